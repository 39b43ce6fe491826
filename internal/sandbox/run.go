package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
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
	as := ownerOf(job.Workspace)
	cell := r.cell(as) // it starts while the rest is prepared
	defer cell.abandon()
	access, err := newAccess(ctx, job, r.Home)
	if err != nil && ctx.Err() == nil {
		return Result{}, fmt.Errorf("cannot run %s: %w", job.Name, err)
	}
	if ctx.Err() != nil {
		return cancelledEarly(begin), nil
	}
	stage, err := newStage(job.Name, job.Source, append(access.read, access.write...)...)
	if err != nil {
		return Result{}, fmt.Errorf("cannot run %s: %w", job.Name, err)
	}
	defer stage.Close()
	modules, err := r.modules(ctx, job.Name, job.Source, job.Lock)
	if err == nil {
		err = stage.addModules(modules)
	}
	if err != nil {
		return Result{}, fmt.Errorf("cannot run %s: its dependencies: %w", job.Name, err)
	}
	if err := stage.placeTmp(access.write, job.Source); err != nil {
		return Result{}, fmt.Errorf("cannot run %s: %w", job.Name, err)
	}
	if err := stage.giveTo(as); err != nil {
		return Result{}, fmt.Errorf("cannot run %s: %w", job.Name, err)
	}
	run := run{job: job, as: as, access: access, stage: stage, nonce: newNonce(), begin: begin, cell: cell}
	return run.do(ctx, r)
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
	layer  OSLayer
	peaks  Peaks
	flags  []string // kept when they are to be explained
	net    []egress.Decision
	more   map[string]int // requests that are not among net, by host
}

func (r *run) do(ctx context.Context, runner *Runner) (Result, error) {
	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	deadline := time.AfterFunc(r.job.Limits.Timeout, func() { stop(errTimedOut) })
	defer deadline.Stop()

	out := newOutput(r.job.Limits.OutputBytes, frameMarker(r.nonce), stop, r.emit())
	out.returned = func() { time.AfterFunc(grace, func() { stop(errReturned) }) }
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
	cmd.Env = environment(r.stage)
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
	env, places := environment(r.stage), r.access.places(r.stage, r.job.Limits)
	var proxy *egress.Proxy
	if len(r.access.net) > 0 {
		var err error
		if proxy, err = egress.New(egress.Options{Allow: r.access.net, Resolver: runner.Resolver, Dial: runner.Dial}); err != nil {
			return nil, err
		}
		authorities, files, err := trusted(runner.CAFile)
		if err != nil {
			return nil, err
		}
		env, places = append(env, append(proxyEnvironment(), authorities...)...), append(places, files...)
	}
	spec := runner.spec(r.denoFlags(proxy != nil), env, r.access.workspace, places)
	spec.Limits = r.job.Limits.kernel()
	spec.Proxy = proxy != nil
	entered := func(p *jail.Process) func() {
		ended := r.watched(p.Cmd.Process.Pid, stop)
		if proxy == nil {
			return ended
		}
		closeProxy := serve(ctx, proxy, p.Listener)
		return func() {
			ended()
			closeProxy()
			r.net, r.more = proxy.Decisions(), proxy.Unlisted()
		}
	}
	if r.cell == nil {
		return nil, errors.New("it was not there when the run began")
	}
	return r.cell.run(order{ctx: ctx, spec: spec, group: confined(r.job.Limits), stop: stop, entered: entered}, r.input(), out.stdout(), out.stderr())
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

// input is what the bootstrap reads: the nonce and the job. The arguments go
// in byte for byte.
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
	fmt.Fprintf(&in, "%s\n%s,\"args\":%s}", r.nonce, head[:len(head)-1], args)
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
