package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

// A warm process is a Deno in its jail, started for exactly one policy: it has
// loaded the modules that its capability will want, and waits for a job. It is
// used once, for a job that would start the very same process, or not at all.
const (
	warmMost  = 3                // of a Runner
	warmIdle  = 60 * time.Second // how long one waits
	warmCPU   = 3 * time.Second  // what one may compute before its job
	warmPrint = 64 << 10         // and print, on each stream
	lowMemory = 10               // percent; with less available none is kept
)

// key tells whether a process that was started for one job is what another one
// needs: it is a hash of everything that decides what the process is and sees.
type key [sha256.Size]byte

// warm is such a process.
type warm struct {
	*run
	key     key
	process *jail.Process
	stdout  heldWriter
	stderr  heldWriter
	entered chan struct{} // closed when process and unwatch are set
	unwatch func()        // ends the watching of the time before the job
	kill    context.CancelFunc
	idle    *time.Timer

	mu   sync.Mutex
	stop func(error) // is told which limit was exceeded
}

// heldWriter keeps what is written until it has a target.
type heldWriter struct {
	mu     sync.Mutex
	held   bytes.Buffer
	over   bool // too much was held, and dropped
	target io.Writer
}

func (w *heldWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.target != nil {
		return w.target.Write(p)
	}
	if w.held.Len()+len(p) > warmPrint {
		w.over = true
		return len(p), nil
	}
	return w.held.Write(p)
}

// release hands on what was held, and from then on everything.
func (w *heldWriter) release(target io.Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
	_, _ = target.Write(w.held.Bytes()) // an output takes everything
	w.held.Reset()
}

func (w *heldWriter) overflowed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// key is the key of a run whose stage does not exist yet: what is in it follows
// from the rest.
func (r *run) key(runner *Runner) key {
	type place struct {
		jail.Mount
		File string // which one it is, whatever its name
	}
	limits := r.job.Limits
	limits.Timeout, limits.OutputBytes = 0, 0 // kept by us, when the job is there
	var places []place
	for _, m := range r.access.mounts() {
		places = append(places, place{m, fileIdentity(m.Path)})
	}
	raw, err := json.Marshal([]any{
		r.job.Name, r.job.Source, r.job.Lock, r.access.workspace, r.access.read, r.access.write, r.access.denyRead, r.access.denyWrite, r.access.net,
		places, limits, r.job.secretEnvironment(), r.as, runner.Deno, fileIdentity(runner.Deno.Path), runner.CAFile, fileIdentity(runner.CAFile), fileIdentity(os.Getenv("SSL_CERT_FILE")),
		fileIdentity(r.access.workspace),
	})
	if err != nil {
		return key{} // not reached: nothing in it can fail
	}
	return sha256.Sum256(raw)
}

// warmed starts a process for a run that is prepared, and tells it what to load.
func (r *Runner) warmed(ru *run, k key) (*warm, error) {
	spec, err := ru.spec(r)
	if err != nil {
		return nil, err
	}
	ctx, kill := context.WithCancel(context.Background())
	w := &warm{run: ru, key: k, entered: make(chan struct{}), kill: kill, stop: func(error) { kill() }}
	ru.warm, ru.layer = true, OSLayer{On: true}
	o := order{ctx: ctx, spec: spec, group: confined(ru.job.Limits), stop: w.stopped, entered: w.enter}
	if err := ru.cell.enter(o, &w.stdout, &w.stderr); err != nil {
		kill()
		return nil, err
	}
	go func() { // nobody needs it any more once the process is gone
		<-ru.cell.done
		kill()
	}()
	select {
	case <-w.entered:
	case <-ru.cell.done:
		return nil, ru.cell.err
	}
	if _, err := ru.cell.stdin.Write(ru.preface(preload(ru.job.Source, ru.job.Lock))); err != nil {
		w.drop()
		return nil, err
	}
	return w, nil
}

// enter is called when the program runs, and what it returns after its end.
func (w *warm) enter(p *jail.Process) func() {
	w.process = p
	bounds := w.job.Limits
	bounds.CPU = warmCPU
	finish := watch(p.Cmd.Process.Pid, bounds, []string{w.stage.root}, w.stopped)
	w.unwatch = sync.OnceFunc(func() { finish() })
	close(w.entered)
	return w.unwatch
}

func (w *warm) stopped(cause error) {
	w.mu.Lock()
	stop := w.stop
	w.mu.Unlock()
	stop(cause)
}

// alive reports whether the process still waits, and printed no more than can be
// held.
func (w *warm) alive() bool {
	select {
	case <-w.cell.done:
		return false
	default:
		return !w.stdout.overflowed() && !w.stderr.overflowed()
	}
}

// drop ends a process that gets no job.
func (w *warm) drop() {
	w.kill()
	w.cell.stdin.Close()
	<-w.cell.done
	if w.process.Listener != nil {
		w.process.Listener.Close()
	}
	w.stage.Close()
}

// do runs the job of another run, for which this process is right. It is not ok
// when the process ended before the capability was begun: nothing has happened
// then.
func (w *warm) do(ctx context.Context, runner *Runner, r *run) (result Result, ok bool) {
	defer w.stage.Close()
	w.job, w.begin, w.redact, w.flags = r.job, r.begin, r.redact, nil
	if w.job.Explain {
		w.denoFlags(len(w.access.net) > 0)
	}
	proxy, err := w.proxy(runner)
	if err != nil {
		w.drop()
		return Result{}, false
	}
	runCtx, out, stop, end := w.bounded(ctx)
	defer end()
	w.unwatch()
	w.mu.Lock()
	w.stop = stop
	w.mu.Unlock()
	ended := w.begun(runCtx, w.process, proxy, stop)
	unbound := context.AfterFunc(runCtx, w.kill)
	defer unbound()
	w.stdout.release(out.stdout())
	w.stderr.release(out.stderr())
	state, err := w.cell.finish(w.input())
	ended()
	out.close()
	if err != nil || state == nil {
		return Result{}, false
	}
	result = w.result(out, state, context.Cause(runCtx))
	if result.Outcome == Crashed && context.Cause(runCtx) == nil && !w.read(out).started {
		return Result{}, false
	}
	return result, true
}

var (
	nodeModule   = regexp.MustCompile(`["']node:([a-z_]+(?:/[a-z_]+)?)["']`)
	staticImport = regexp.MustCompile(`(?m)(?:^|[;}\s])(?:import|export)\s+(?:[^"';]*?\sfrom\s*)?["']((?:npm|jsr|https):[^"'\s]+)["']`)
	typeImport   = regexp.MustCompile(`(?m)(?:import|export)\s+type\s[^"';]*?\sfrom\s*["'][^"']+["']`)
)

// commonNode are what packages of npm mostly ask Node for.
var commonNode = []string{"assert", "buffer", "crypto", "events", "fs", "os", "path", "process", "stream", "string_decoder", "url", "util"}

// preload is what a warm process loads before its job: what starts Deno's
// compiler, the modules of Node and the locked dependencies that the source
// imports statically.
func preload(source, lock []byte) []string {
	modules := []string{"data:application/typescript,export%20const%20a:%20number%20=%201"}
	text := typeImport.ReplaceAllString(string(source), "")
	add := func(name string) {
		if !slices.Contains(modules, name) {
			modules = append(modules, name)
		}
	}
	for _, m := range nodeModule.FindAllStringSubmatch(text, 32) {
		add("node:" + m[1])
	}
	if len(lock) == 0 {
		return modules
	}
	if bytes.Contains(lock, []byte(`"npm"`)) {
		for _, name := range commonNode {
			add("node:" + name)
		}
	}
	for _, m := range staticImport.FindAllStringSubmatch(text, 32) {
		if Locks(lock, m[1]) {
			add(m[1])
		}
	}
	return modules
}

// fileIdentity tells one file from another that has taken its name.
func fileIdentity(path string) string {
	info, err := os.Stat(path)
	if path == "" || err != nil {
		return ""
	}
	identity := inode(info)
	if !info.IsDir() {
		identity += fmt.Sprintf(" %d %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
	}
	return strings.TrimSpace(identity)
}
