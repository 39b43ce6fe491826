package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/egress"
	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

// The limits of a run where [Limits] has a zero.
const (
	defaultTimeout = 45 * time.Second
	defaultOutput  = 1 << 20
	defaultHeapMB  = 256

	defaultRSSMB     = 512
	defaultFileMB    = 64
	defaultWrittenMB = 256
	defaultFiles     = 5000
	defaultProcesses = 96

	descriptors = 1024 // open files of a run
)

// grace is how long a capability may go on after its default export returned:
// a server that was not closed or a forgotten timer does not cost the value.
const grace = time.Second

// Runner runs capabilities, each in a Deno of its own. Any number of runs may go
// on at once. Its fields are set before its first use.
type Runner struct {
	Deno Deno
	Home string // our folder, ~/.tendril; no run can reach it
	// Self is the path of a binary whose main calls [jail.Main] first, such as
	// our own. The operating system layer needs it; empty means to do without.
	Self string
	// RequireOS refuses to run without that layer.
	RequireOS bool
	// CAFile holds certificates of authorities that capabilities trust besides
	// those of the system; "" is none.
	CAFile string
	// Resolver and Dial replace the network behind the egress proxy.
	Resolver egress.Resolver
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)

	// Registries are where packages come from.
	Registries Registries

	host  host
	cache moduleCache
}

// Why we stopped a run.
var (
	errTimedOut = errors.New("timed out")
	errOutput   = errors.New("too much output")
	errReturned = errors.New("went on after its value was returned")
)

// Run executes a job and waits for its end. The error is about a run that could
// not be started: no Deno (it wraps [ErrNoDeno]), a workspace that cannot be
// used, arguments that are no JSON object, or a grant that cannot be expressed.
// All else, and be it that Deno crashed or ctx ended, is told in the Result.
//
// The workspace is resolved: __workspace and the working folder are the path
// without symbolic links. When Run returns the process is gone and so are its
// temporary files.
func (r *Runner) Run(ctx context.Context, job Job) (Result, error) {
	begin := time.Now()
	if r.Deno.Path == "" {
		return Result{}, fmt.Errorf("cannot run %s: %w; run `tendril setup`", job.Name, ErrNoDeno)
	}
	job.Limits = job.Limits.WithDefaults()
	if err := checkArgs(job.Args); err != nil {
		return Result{}, fmt.Errorf("cannot run %s: %w", job.Name, err)
	}
	access, err := newAccess(ctx, job, r.Home)
	if err != nil && ctx.Err() == nil {
		return Result{}, fmt.Errorf("cannot run %s: %w", job.Name, err)
	}
	if ctx.Err() != nil {
		return cancelledEarly(begin), nil
	}
	run := &run{job: job, as: ownerOf(job.Workspace), access: access, nonce: newNonce(), begin: begin, redact: job.redactor()}
	defer r.warmUpAfter(run)
	if w := r.takeWarm(run.key(r)); w != nil {
		if result, ok := w.do(ctx, r, run); ok {
			return result, nil
		}
	}
	run.cell = r.cell(run.as) // it starts while the rest is prepared
	defer run.cell.abandon()
	if err := run.prepare(ctx, r); err != nil {
		if ctx.Err() != nil {
			return cancelledEarly(begin), nil
		}
		return Result{}, fmt.Errorf("cannot run %s: %w", job.Name, err)
	}
	defer run.stage.Close()
	return run.do(ctx, r)
}

// prepare makes the stage of a run, which the caller closes.
func (r *run) prepare(ctx context.Context, runner *Runner) error {
	stage, err := newStage(r.job.Name, r.job.Source, append(slices.Clone(r.access.read), r.access.write...)...)
	if err != nil {
		return err
	}
	modules, err := runner.modules(ctx, r.job.Name, r.job.Source, r.job.Lock)
	if err == nil {
		err = stage.addModules(modules)
	}
	if err != nil {
		err = fmt.Errorf("its dependencies: %w", err)
	}
	if err == nil {
		err = stage.placeTmp(r.access.write, r.job.Source)
	}
	if err == nil {
		err = stage.giveTo(r.as)
	}
	if err != nil {
		stage.Close()
		return err
	}
	r.stage = stage
	return nil
}

// run is one execution on its way.
type run struct {
	job    Job
	access access
	stage  *stage
	nonce  string
	begin  time.Time
	as     *jail.User
	cell   *cell // where it runs in the operating system layer
	redact *Redactor
	warm   bool // it read its preface already
	layer  OSLayer
	peaks  Peaks
	flags  []string // kept when they are to be explained
	net    []egress.Decision
	more   map[string]int // requests that are not among net, by host
}

// bounded is a context that ends with the time of the job, and where its output
// goes.
func (r *run) bounded(ctx context.Context) (runCtx context.Context, out *output, stop func(error), end func()) {
	runCtx, cancel := context.WithCancelCause(ctx)
	deadline := time.AfterFunc(r.job.Limits.Timeout, func() { cancel(errTimedOut) })
	out = newOutput(r.job.Limits.OutputBytes, frameMarker(r.nonce), r.redact, cancel, r.emit())
	out.returned = func() { time.AfterFunc(grace, func() { cancel(errReturned) }) }
	return runCtx, out, cancel, func() {
		deadline.Stop()
		cancel(nil)
	}
}

func (r *run) do(ctx context.Context, runner *Runner) (Result, error) {
	runCtx, out, stop, end := r.bounded(ctx)
	defer end()
	state, err := r.start(runCtx, runner, out, stop)
	out.close()

	if state == nil {
		if ctx.Err() != nil {
			return cancelledEarly(r.begin), nil
		}
		if errors.Is(context.Cause(runCtx), errTimedOut) {
			text := fmt.Sprintf("timed out after %s, before it was started", r.job.Limits.Timeout)
			return Result{Outcome: TimedOut, Text: text, Error: text, ExitCode: -1, Duration: time.Since(r.begin)}, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w at %s any more; run `tendril setup`", ErrNoDeno, runner.Deno.Path)
		}
		return Result{}, fmt.Errorf("cannot run %s: %w", r.job.Name, err)
	}
	return r.result(out, state, context.Cause(runCtx)), nil
}

// start runs Deno, in the operating system layer if that is in force, and waits
// for its end. The state is nil when it did not start.
func (r *run) start(ctx context.Context, runner *Runner, out *output, stop func(error)) (*os.ProcessState, error) {
	state, layer, err := runner.inLayer(ctx, r.as, func() (*os.ProcessState, error) { return r.inside(ctx, runner, out, stop) })
	if r.layer = layer; layer.On {
		return state, err
	}
	switch {
	case runner.RequireOS:
		return nil, fmt.Errorf("the operating system layer is required, and is not in force: %s", layer.Why)
	case slices.Contains(r.access.net, AnyHost):
		return nil, fmt.Errorf("access to any host needs the operating system layer, and it is not in force: %s", layer.Why)
	}
	if err := r.stage.copyModules(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, runner.Deno.Path, r.denoFlags(false)...)
	cmd.Dir = r.access.workspace
	cmd.Env = append(environment(r.stage), r.job.secretEnvironment()...)
	if runner.CAFile != "" {
		cmd.Env = append(cmd.Env, "DENO_CERT="+runner.CAFile)
	}
	cmd.Stdin = bytes.NewReader(r.input())
	cmd.Stdout = out.stdout()
	cmd.Stderr = out.stderr()
	return runGroup(cmd, func(pid int) func() {
		limitProcess(pid, r.job.Limits)
		return r.watched(pid, stop)
	})
}

// inside runs Deno in the operating system layer, with the egress proxy as its
// only way out.
func (r *run) inside(ctx context.Context, runner *Runner, out *output, stop func(error)) (*os.ProcessState, error) {
	spec, err := r.spec(runner)
	if err != nil {
		return nil, err
	}
	proxy, err := r.proxy(runner)
	if err != nil {
		return nil, err
	}
	entered := func(p *jail.Process) func() { return r.begun(ctx, p, proxy, stop) }
	if r.cell == nil {
		return nil, errors.New("it was not there when the run began")
	}
	return r.cell.run(order{ctx: ctx, spec: spec, group: confined(r.job.Limits), stop: stop, entered: entered}, r.input(), out.stdout(), out.stderr())
}

// spec is the jail of a run.
func (r *run) spec(runner *Runner) (jail.Spec, error) {
	proxied := len(r.access.net) > 0
	env, places := environment(r.stage), r.access.places(r.stage, r.job.Limits)
	if proxied {
		authorities, files, err := trusted(runner.CAFile)
		if err != nil {
			return jail.Spec{}, err
		}
		env, places = append(env, append(proxyEnvironment(), authorities...)...), append(places, files...)
	}
	spec := runner.spec(r.denoFlags(proxied), append(env, r.job.secretEnvironment()...), r.access.workspace, places)
	spec.Limits = r.job.Limits.kernel()
	spec.Proxy = proxied
	return spec, nil
}

// proxy is the way out of a run, nil for none.
func (r *run) proxy(runner *Runner) (*egress.Proxy, error) {
	if len(r.access.net) == 0 {
		return nil, nil
	}
	return egress.New(egress.Options{Allow: r.access.net, Resolver: runner.Resolver, Dial: runner.Dial})
}

// begun watches a process and lets it out. What it returns is called after the
// end.
func (r *run) begun(ctx context.Context, p *jail.Process, proxy *egress.Proxy, stop func(error)) (ended func()) {
	unwatch := r.watched(p.Cmd.Process.Pid, stop)
	if proxy == nil {
		return unwatch
	}
	closeProxy := serve(ctx, proxy, p.Listener)
	return func() {
		unwatch()
		closeProxy()
		r.net, r.more = r.redacted(proxy.Decisions()), r.redactedHosts(proxy.Unlisted())
	}
}

// redactor takes out what a run was given, and what it must not tell either.
func (j *Job) redactor() *Redactor {
	all := maps.Clone(j.Hide)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, j.Secrets)
	return NewRedactor(all)
}

// redacted takes secrets out of decisions: a host that was asked for may hold one.
func (r *run) redacted(decisions []egress.Decision) []egress.Decision {
	for i := range decisions {
		d := &decisions[i]
		d.Host, d.Reason = r.redact.Text(d.Host), r.redact.Text(d.Reason)
	}
	return decisions
}

func (r *run) redactedHosts(counts map[string]int) map[string]int {
	if r.redact == nil {
		return counts
	}
	out := map[string]int{}
	for host, n := range counts {
		out[r.redact.Text(host)] += n
	}
	return out
}

// secretEnvironment are the secrets of a job as its environment, sorted.
func (j *Job) secretEnvironment() []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(j.Secrets)) {
		env = append(env, name+"="+j.Secrets[name])
	}
	return env
}

// serve runs a proxy until close is called.
func serve(ctx context.Context, proxy *egress.Proxy, listener net.Listener) (closed func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = proxy.Serve(ctx, listener) // a listener that fails ends the network of this run
	}()
	return func() {
		cancel()
		<-done
	}
}

func (r *run) denoFlags(proxied bool) []string {
	flags := r.access.flags(r.stage, r.job.Limits.HeapMB, proxied)
	if names := slices.Sorted(maps.Keys(r.job.Secrets)); len(names) > 0 {
		flags = slices.Insert(flags, len(flags)-1, "--allow-env="+strings.Join(names, ","))
	}
	if r.job.Explain {
		r.flags = flags
	}
	return flags
}

func (r *run) watched(pid int, stop func(error)) (ended func()) {
	roots := slices.Clone(r.access.write)
	for _, root := range []string{r.stage.root, r.stage.tmp()} { // Deno's own folder is there
		if !withinAny(root, roots) {
			roots = append(roots, root)
		}
	}
	finish := watch(pid, r.job.Limits, roots, stop)
	return func() { r.peaks = finish() }
}

// Narrowed is the smaller of each limit of l and m. Zero means that none was set.
func (l Limits) Narrowed(m Limits) Limits {
	return Limits{
		Timeout:     narrower(l.Timeout, m.Timeout),
		OutputBytes: narrower(l.OutputBytes, m.OutputBytes),
		HeapMB:      narrower(l.HeapMB, m.HeapMB),
		RSSMB:       narrower(l.RSSMB, m.RSSMB),
		FileMB:      narrower(l.FileMB, m.FileMB),
		WrittenMB:   narrower(l.WrittenMB, m.WrittenMB),
		Files:       narrower(l.Files, m.Files),
		Processes:   narrower(l.Processes, m.Processes),
		CPU:         narrower(l.CPU, m.CPU),
	}
}

func narrower[T int | int64 | time.Duration](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// kernel is the part of the limits that the kernel keeps.
func (l Limits) kernel() jail.Limits {
	return jail.Limits{
		FileBytes: int64(l.FileMB) << 20, Descriptors: descriptors, Threads: int64(l.Processes),
		CPUSeconds: int64((l.CPU + time.Second - 1) / time.Second),
	}
}

// emit is the callback of live lines, with temporary paths hidden.
func (r *run) emit() func(stream, line string) {
	if r.job.Output == nil {
		return nil
	}
	return func(stream, line string) { r.job.Output(stream, advise(r.stage.hide(line))) }
}

// preface is what the bootstrap reads first: the nonce, and which modules to
// load before it reads the job.
func (r *run) preface(modules []string) []byte {
	list, _ := json.Marshal(orNone(modules)) // strings
	return fmt.Appendf(nil, "%s\n%s\n", r.nonce, list)
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// input is what the bootstrap reads then: the job. The arguments go in byte for
// byte.
func (r *run) input() []byte {
	soft := r.job.Limits.Timeout - min(time.Second, r.job.Limits.Timeout/10)
	head, _ := json.Marshal(map[string]any{ // strings and a number cannot fail
		"url":       fileURL(r.stage.source()),
		"workspace": r.access.workspace,
		"tmp":       r.stage.tmp(),
		"softMs":    soft.Milliseconds(),
	})
	args := r.job.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var in bytes.Buffer
	if !r.warm {
		in.Write(r.preface(nil))
	}
	fmt.Fprintf(&in, "%s,\"args\":%s}", head[:len(head)-1], args)
	return in.Bytes()
}

func checkArgs(args json.RawMessage) error {
	if len(args) == 0 {
		return nil
	}
	if !json.Valid(args) || bytes.TrimLeft(args, " \t\r\n")[0] != '{' {
		return errors.New("the arguments are not a JSON object")
	}
	return nil
}

// WithDefaults fills in the defaults.
func (l Limits) WithDefaults() Limits {
	if l.Timeout <= 0 {
		l.Timeout = defaultTimeout
	}
	if l.OutputBytes <= 0 {
		l.OutputBytes = defaultOutput
	}
	for _, limit := range []struct {
		value *int
		usual int
	}{{&l.HeapMB, defaultHeapMB}, {&l.RSSMB, defaultRSSMB}, {&l.FileMB, defaultFileMB}, {&l.WrittenMB, defaultWrittenMB},
		{&l.Files, defaultFiles}, {&l.Processes, defaultProcesses}} {
		if *limit.value <= 0 {
			*limit.value = limit.usual
		}
	}
	return l
}

func cancelledEarly(begin time.Time) Result {
	const text = "cancelled before it was started"
	return Result{Outcome: Cancelled, Text: text, Error: text, ExitCode: -1, Duration: time.Since(begin)}
}
