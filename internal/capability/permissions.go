package capability

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// Network is what policy says about declared hosts.
type Network string

// The policies for the network.
const (
	NetworkAuto Network = "auto" // declared public hosts are granted
	NetworkAsk  Network = "ask"  // a person is asked
	NetworkDeny Network = "deny"
)

// Policy bounds what a capability may be granted.
type Policy struct {
	Network        Network  // "" is auto
	AllowedDomains []string // host, host:port or *.host; empty: no ceiling
}

// Question is what a person is asked.
type Question struct {
	Name       string // of the capability; "" when the whole workspace is meant
	Capability string // what it does
	Version    string // "" for one that is being registered
	Hash       string // of the version, as [Info] has it; "" for a whole workspace
	Grants            // all that it may do then
	// New is what of it nobody has allowed yet: hosts of Net, and secrets, alone or
	// with these hosts.
	New Wants
}

// Ask is the question in a line, with what comes from a definition as it is.
func (q Question) Ask() string {
	who := strings.TrimSpace(q.Name + " " + q.Version)
	if q.Name == "" {
		who = "the capabilities of this workspace"
	}
	var what []string
	if len(q.New.Hosts) > 0 {
		what = append(what, "reach "+strings.Join(HostNames(q.New.Hosts), ", "))
	}
	if len(q.New.Secrets) > 0 {
		with := ", and use no network"
		if len(q.Net) > 0 {
			with = ", which it could send to " + strings.Join(HostNames(q.Net), ", ")
		}
		what = append(what, "get "+secretsText(q.New.Secrets)+with)
	}
	return fmt.Sprintf("May %s %s?", who, strings.Join(what, ", and "))
}

// HostNames are hosts as a person calls them.
func HostNames(hosts []string) []string {
	names := slices.Clone(hosts)
	for i, h := range names {
		if h == sandbox.AnyHost {
			names[i] = "any public host"
		}
	}
	return names
}

// Answer is what the person said.
type Answer string

// The answers to a [Question].
const (
	Deny        Answer = "deny"   // until the turn ends
	AllowOnce   Answer = "once"   // until this process ends
	AllowAlways Answer = "always" // on this machine
)

// Approver asks a person. Approve returns when they answered, or [Deny] when
// nobody did in time; an error is only ctx's.
type Approver interface {
	Approve(ctx context.Context, q Question) (Answer, error)
}

// checkPermissions judges how permissions are written, whatever policy says.
func checkPermissions(p *Permissions, workspace string) (warnings, faults []string) {
	if p == nil {
		return nil, nil
	}
	if len(p.Net) > maxHosts {
		faults = append(faults, fmt.Sprintf("definition.permissions.net has %d entries; at most %d are allowed", len(p.Net), maxHosts))
	} else {
		for i, host := range p.Net {
			if err := sandbox.CheckHost(host); err != nil {
				faults = append(faults, fmt.Sprintf("definition.permissions.net[%d]: %v", i, err))
			}
		}
	}
	closedRead, closedWrite := sandbox.Protected(workspace)
	faults = append(faults, checkPaths("read", p.Read, workspace, closedRead)...)
	faults = append(faults, checkPaths("write", p.Write, workspace, closedWrite)...)
	if _, err := parseLimits(p.Limits); err != nil {
		faults = append(faults, err.Error())
	}
	return warnings, faults
}

func checkPaths(kind string, paths []string, workspace string, closed []string) []string {
	var faults []string
	for i, p := range paths {
		if fault := checkPath(p, workspace, closed); fault != "" {
			faults = append(faults, fmt.Sprintf("definition.permissions.%s[%d] is %s: %s", kind, i, quote(p), fault))
		}
	}
	if len(paths) > maxHosts {
		faults = append(faults[:0], fmt.Sprintf("definition.permissions.%s has %d entries; at most %d are allowed", kind, len(paths), maxHosts))
	}
	return faults
}

func checkPath(p, workspace string, closed []string) string {
	switch {
	case strings.TrimSpace(p) == "":
		return `it is blank; "." is the whole workspace`
	case strings.ContainsAny(p, ",*?[]{}\\\x00\r\n"):
		return "commas, patterns and backslashes cannot be granted; name a file or a folder"
	case path.IsAbs(p) || filepath.IsAbs(p) || strings.HasPrefix(p, "~"):
		return "write it relative to the workspace"
	case !filepath.IsLocal(filepath.FromSlash(p)):
		return "it leads out of the workspace"
	}
	full := filepath.Join(workspace, filepath.FromSlash(p))
	for _, c := range closed {
		if strings.EqualFold(full, c) || strings.HasPrefix(strings.ToLower(full), strings.ToLower(c)+string(filepath.Separator)) {
			return "it is protected"
		}
	}
	return ""
}

// mostOf is the most that a definition may ask for.
var mostOf = map[string]int64{
	"timeoutMs": 600_000, "outputBytes": 16 << 20, "heapMB": 2048, "rssMB": 4096, "fileMB": 4096, "writtenMB": 16_384,
	"files": 100_000, "processes": 512, "cpuS": 3600,
}

var limitKeys = []string{"timeoutMs", "outputBytes", "heapMB", "rssMB", "fileMB", "writtenMB", "files", "processes", "cpuS"}

// parseLimits reads permissions.limits.
func parseLimits(raw json.RawMessage) (limits sandbox.Limits, err error) {
	if raw == nil {
		return limits, nil
	}
	const at = "definition.permissions.limits"
	fields, err := DecodeObject(raw, at, limitKeys...)
	if err != nil {
		return limits, err
	}
	numbers := make(map[string]int64, len(fields))
	for _, key := range limitKeys {
		value, ok := fields[key]
		if !ok {
			continue
		}
		var n int64
		if json.Unmarshal(value, &n) != nil || n <= 0 {
			return limits, &InputError{at + "." + key, "want a positive integer, got " + clip(string(value), 40)}
		}
		if n > mostOf[key] {
			return limits, &InputError{at + "." + key, fmt.Sprintf("%d is more than the %d that is allowed", n, mostOf[key])}
		}
		numbers[key] = n
	}
	return sandbox.Limits{
		Timeout:     time.Duration(numbers["timeoutMs"]) * time.Millisecond,
		OutputBytes: numbers["outputBytes"],
		HeapMB:      int(numbers["heapMB"]),
		RSSMB:       int(numbers["rssMB"]),
		FileMB:      int(numbers["fileMB"]),
		WrittenMB:   int(numbers["writtenMB"]),
		Files:       int(numbers["files"]),
		Processes:   int(numbers["processes"]),
		CPU:         time.Duration(numbers["cpuS"]) * time.Second,
	}, nil
}

// covers reports whether one of allowed grants host.
func covers(allowed []string, host string) bool {
	name, port, _ := strings.Cut(strings.ToLower(host), ":")
	return slices.ContainsFunc(allowed, func(a string) bool {
		if a == sandbox.AnyHost {
			return true
		}
		aName, aPort, hasPort := strings.Cut(strings.ToLower(a), ":")
		if hasPort && aPort != port {
			return false
		}
		if parent, ok := strings.CutPrefix(aName, "*."); ok {
			bare := strings.TrimPrefix(name, "*.")
			return bare == parent || strings.HasSuffix(bare, "."+parent)
		}
		return aName == name
	})
}

func uncovered(allowed, hosts []string) []string {
	var out []string
	for _, h := range hosts {
		if !covers(allowed, h) {
			out = append(out, h)
		}
	}
	return out
}

// answers remembers what was answered, hosts by capability, so that nothing is
// asked twice. Nil remembers nothing.
type answers struct {
	mu    sync.Mutex
	hosts map[string][]string
}

func (a *answers) get(name string) []string {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.hosts[name])
}

func (a *answers) add(name string, hosts []string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hosts == nil {
		a.hosts = map[string][]string{}
	}
	a.hosts[name] = append(a.hosts[name], hosts...)
}

// allow decides whether the hosts and the secrets of a question may be granted.
// waiting are those that nobody has allowed and nobody is there to ask about; an
// error is a *[Refusal], or ctx's. Secrets always need a person.
func (r *Registry) allow(ctx context.Context, q Question) (waiting Wants, err error) {
	if len(q.Net)+len(q.Secrets) == 0 {
		return Wants{}, nil
	}
	if len(q.Net) > 0 {
		if err := r.opts.Policy.check(q.Net); err != nil {
			return Wants{}, err
		}
	}
	if q.New, err = r.wanted(ctx, q); err != nil || q.New.None() {
		return Wants{}, err
	}
	denied := denials(ctx).get(q.Name)
	if slices.ContainsFunc(q.items(), func(item string) bool { return slices.Contains(denied, item) }) {
		return Wants{}, deniedBy(q)
	}
	approver := r.approver(ctx)
	if approver == nil {
		return q.New, nil
	}
	return Wants{}, r.ask(ctx, approver, q)
}

// wanted is what of a question needs a person and was not allowed yet.
func (r *Registry) wanted(ctx context.Context, q Question) (Wants, error) {
	revoked, err := r.isRevoked(ctx, q.Name)
	if err != nil {
		return Wants{}, err
	}
	approved, err := r.approved(ctx, q.Name)
	if err != nil {
		return Wants{}, err
	}
	approved = append(approved, r.allowed.get(q.Name)...)
	w := Wants{Secrets: unapproved(approved, q.Secrets, q.Net)}
	if r.opts.Policy.network(ctx) == NetworkAsk || revoked || slices.Contains(q.Net, sandbox.AnyHost) {
		hosts, _ := splitApprovals(approved)
		w.Hosts = uncovered(hosts, q.Net)
	}
	return w, nil
}

// items are the approvals that a yes gives.
func (q Question) items() []string {
	return append(slices.Clone(q.New.Hosts), secretItems(q.New.Secrets, q.Net)...)
}

func (r *Registry) ask(ctx context.Context, approver Approver, q Question) error {
	answer, err := approver.Approve(ctx, q)
	if err != nil {
		return fmt.Errorf("ask for %s for %s: %w", q.New, q.Name, err)
	}
	switch answer {
	case AllowAlways:
		return r.recordApproval(ctx, q.Name, q.items())
	case AllowOnce:
		r.allowed.add(q.Name, q.items())
		return nil
	}
	denials(ctx).add(q.Name, q.items())
	return deniedBy(q)
}

func deniedBy(q Question) error {
	return &Refusal{
		Step:    StepPermissions,
		Message: fmt.Sprintf("a person did not allow %s %s", q.Name, q.New),
		Hint:    "do it without, or tell the user what is missing",
		Denied:  append(slices.Clone(q.New.Hosts), q.New.Secrets...),
	}
}

// check says what policy itself forbids.
func (p Policy) check(hosts []string) error {
	if p.Network == NetworkDeny {
		return &Refusal{
			Step: StepPermissions, Message: "network access is switched off (sandbox.policy.network is deny)",
			Hint: "leave permissions.net out and do it without network, or tell the user",
		}
	}
	if len(p.AllowedDomains) == 0 {
		return nil
	}
	if outside := uncovered(p.AllowedDomains, hosts); len(outside) > 0 {
		return &Refusal{
			Step:    StepPermissions,
			Message: fmt.Sprintf("%s: not among the hosts that the settings allow (%s)", strings.Join(outside, ", "), strings.Join(p.AllowedDomains, ", ")),
			Hint:    "use the allowed hosts only, or tell the user that sandbox.allowedDomains must be extended",
		}
	}
	return nil
}

// grantsOf says what permissions reach, for a person.
func grantsOf(p *Permissions) Grants {
	g := Grants{Net: []string{}, Read: []string{"the workspace"}, Write: []string{"the workspace"}, Secrets: []string{}}
	if p == nil {
		return g
	}
	g.Net = orEmpty(p.Net)
	g.Limits = p.Limits
	g.Secrets = orEmpty(p.Secrets)
	if p.Read != nil {
		g.Read = p.Read
	}
	if p.Write != nil {
		g.Write = p.Write
	}
	return g
}

// grantFor is the sandbox's form of permissions. Its paths stay relative: the
// folder that a session works in need not be the one that has the registry.
func grantFor(p *Permissions) sandbox.Grant {
	if p == nil {
		return sandbox.Grant{}
	}
	return sandbox.Grant{Net: p.Net, Read: local(p.Read), Write: local(p.Write)}
}

func local(paths []string) []string {
	if paths == nil {
		return nil
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.FromSlash(p)
	}
	return out
}
