package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

// access is a grant in the form of Deno's flags, all paths resolved.
type access struct {
	workspace           string
	read, write         []string
	denyRead, denyWrite []string
	nested              []string // protected places that only the operating system layer can close
	net                 []string
}

// newAccess turns a job's grant into exact permissions. The error says which
// part of it cannot be expressed.
func newAccess(ctx context.Context, job Job, home string) (access, error) {
	workspace, err := checkWorkspace(job.Workspace)
	if err != nil {
		return access{}, err
	}
	a := access{workspace: workspace}
	a.denyRead, a.denyWrite = Protected(workspace)
	if home, err := realPath(home); err == nil && filepath.IsAbs(home) && expressible(home) == nil {
		a.denyRead = append(a.denyRead, home)
		a.denyWrite = append(a.denyWrite, home)
	}
	if a.read, err = a.paths("read", job.Grant.Read, job.Workspace, a.denyRead); err != nil {
		return access{}, err
	}
	if a.write, err = a.paths("write", job.Grant.Write, job.Workspace, a.denyWrite); err != nil {
		return access{}, err
	}
	if err := a.closeLinks(ctx); err != nil {
		return access{}, err
	}
	if err := a.checkMoves(); err != nil {
		return access{}, err
	}
	for _, entry := range job.Grant.Net {
		if err := CheckHost(entry); err != nil {
			return access{}, err
		}
	}
	a.net = job.Grant.Net
	return a, nil
}

func checkWorkspace(path string) (string, error) {
	if err := expressible(path); err != nil {
		return "", fmt.Errorf("cannot use this workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("cannot use this workspace: %w", err)
	}
	if err := expressible(real); err != nil {
		return "", fmt.Errorf("cannot use this workspace: %w", err)
	}
	return real, nil
}

// paths resolves the granted paths of one kind; nil stands for the workspace.
func (a *access) paths(kind string, granted []string, workspace string, protected []string) ([]string, error) {
	if granted == nil {
		return []string{a.workspace}, nil
	}
	var resolved []string
	for _, path := range granted {
		real, err := a.path(path, workspace)
		if err == nil && withinAny(real, protected) {
			err = fmt.Errorf("%s is a protected place", path)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot grant %s access: %w", kind, err)
		}
		resolved = append(resolved, real)
	}
	return resolved, nil
}

// path resolves one granted path. A link in the workspace must stay in it.
func (a *access) path(path, workspace string) (string, error) {
	if filepath.IsLocal(path) {
		path = filepath.Join(workspace, path)
	}
	if err := expressible(path); err != nil {
		return "", err
	}
	path = filepath.Clean(path)
	if rel, err := filepath.Rel(filepath.Clean(workspace), path); err == nil && filepath.IsLocal(rel) {
		path = filepath.Join(a.workspace, rel)
	}
	real, err := realPath(path)
	if err != nil {
		return "", err
	}
	if within(path, a.workspace) && !within(real, a.workspace) {
		return "", fmt.Errorf("%s is a link out of the workspace, to %s", path, real)
	}
	return real, expressible(real)
}

// closeLinks adds deny rules for the links below the granted paths.
func (a *access) closeLinks(ctx context.Context) error {
	found := links{
		canRead:  func(path string) bool { return withinAny(path, a.read) && !withinAny(path, a.denyRead) },
		canWrite: func(path string) bool { return withinAny(path, a.write) && !withinAny(path, a.denyWrite) },
	}
	roots := append(slices.Clone(a.read), a.write...)
	slices.Sort(roots)
	for i, root := range roots {
		if withinAny(root, roots[:i]) {
			continue
		}
		if err := found.scan(ctx, root); err != nil {
			return err
		}
	}
	for _, path := range slices.Concat(found.denyRead, found.denyWrite) {
		if err := expressible(path); err != nil {
			return fmt.Errorf("a link cannot be closed: %w", err)
		}
	}
	a.nested = found.protected
	a.denyRead = append(a.denyRead, found.denyRead...)
	a.denyWrite = append(a.denyWrite, found.denyWrite...)
	return nil
}

// flags are the arguments of `deno` for a run, bootstrap included. With proxied
// the egress proxy decides which addresses a host may have; without it Deno's
// own rules must.
func (a *access) flags(s *stage, heapMB int, proxied bool) []string {
	args := []string{"run", "--no-prompt", "--quiet", "--no-config", "--node-modules-dir=none", "--no-code-cache", "--cached-only"}
	args = append(args, s.modules.flags(s)...)
	args = append(args,
		"--ignore-env", "--deny-run", "--deny-ffi",
		"--allow-sys=hostname,uid,gid,cpus,homedir,username",
		"--v8-flags=--max-old-space-size="+strconv.Itoa(heapMB),
	)
	args = appendLists(args, "--allow-read=", slices.Concat(a.read, []string{s.source(), s.tmp()}, s.modules.folders(s)))
	args = appendLists(args, "--deny-read=", a.denyRead)
	write := slices.Clone(a.write)
	if s.tmpWritable {
		write = append(write, s.tmp())
	}
	args = appendLists(args, "--allow-write=", write)
	args = appendLists(args, "--deny-write=", a.denyWrite)
	switch {
	case proxied && slices.Contains(a.net, AnyHost):
		args = append(args, "--allow-net")
	case proxied:
		args = appendLists(args, "--allow-net=", append(slices.Clone(a.net), jail.ProxyAddress))
	case len(a.net) > 0:
		args = appendLists(args, "--allow-net=", a.net)
		args = appendLists(args, "--deny-net=", append(closedRanges(), "[::1]", "[::]"))
	}
	return append(args, s.bootstrap())
}

// appendLists writes a list as flags that are short enough for the kernel,
// which takes at most 128 KiB for one argument. Deno adds them up.
func appendLists(args []string, flag string, list []string) []string {
	const most = 64 << 10
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && (n == 0 || size+len(list[n]) < most) {
			size += len(list[n]) + 1
			n++
		}
		args = append(args, flag+strings.Join(list[:n], ","))
		list = list[n:]
	}
	return args
}

// proxyEnvironment leads everything through the egress proxy.
func proxyEnvironment() []string {
	const proxy = "http://" + jail.ProxyAddress
	return []string{"HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "http_proxy=" + proxy, "https_proxy=" + proxy, "NO_PROXY=", "no_proxy=", "NODE_USE_ENV_PROXY=1"}
}

// authorityFiles are where systems keep the certificates that they trust.
var authorityFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// trusted shows a run the certificates that this system trusts, and those of
// another file.
func trusted(more string) (env []string, places []jail.Mount, err error) {
	show := func(variable, inside, file string) error {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return err
		}
		env = append(env, variable+"="+inside)
		places = append(places, jail.Mount{Path: inside, Source: real, Kind: jail.Read})
		return nil
	}
	for _, file := range append([]string{os.Getenv("SSL_CERT_FILE")}, authorityFiles...) {
		if file != "" && show("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt", file) == nil {
			break
		}
	}
	if more != "" {
		if err := show("DENO_CERT", "/etc/ssl/more.pem", more); err != nil {
			return nil, nil, fmt.Errorf("sandbox.caFile cannot be used: %w", err)
		}
	}
	return env, places, nil
}

// environment is all that Deno and the capability see.
func environment(s *stage) []string {
	return append(append(systemEnv(), s.modules.environment()...),
		"DENO_DIR="+s.denoDir(),
		"DENO_NO_PACKAGE_JSON=1",
		"DENO_NO_UPDATE_CHECK=1",
		"DENO_CACHE_DB_MODE=memory",
		"DENO_KV_DB_MODE=memory",
		"DENO_TLS_CA_STORE=system",
		"TMPDIR="+s.tmp(),
		"NO_COLOR=1",
	)
}
