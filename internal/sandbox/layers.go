package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

// OSLayer says whether the operating system layer is in force, and if not, why.
type OSLayer struct {
	On  bool   `json:"on"`
	Why string `json:"why,omitempty"` // why not
}

// host is what a Runner keeps between runs.
type host struct {
	mu        sync.Mutex
	spare     *cell
	layer     *OSLayer
	libraries []jail.Mount
	prepared  bool // a spare one is wanted
	pool      pool
}

// Prepare starts, in the background, what the next run in a workspace would have
// to wait for, and from then on the same for each run after it; it also removes
// what killed processes of ours left behind. It is worth its memory when runs
// are likely. Close ends what was started.
func (r *Runner) Prepare(workspace string) {
	if r.Self == "" || r.Deno.Path == "" {
		return
	}
	r.host.mu.Lock()
	first := !r.host.prepared
	r.host.prepared = true
	r.host.mu.Unlock()
	r.host.pool.allow()
	r.prepareNext(ownerOf(workspace))
	if first {
		go func() {
			for _, base := range stageBases() {
				sweep(base)
			}
		}()
	}
}

// prepareNext starts a spare cell unless there is one.
func (r *Runner) prepareNext(as *jail.User) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	off := r.host.layer != nil && !r.host.layer.On
	if r.host.prepared && !off && r.host.spare == nil {
		r.host.spare = newCell(r.Self, as)
	}
}

// Close ends what [Runner.Prepare] started. Runs that go on are not touched.
func (r *Runner) Close() {
	r.host.mu.Lock()
	spare := r.host.spare
	r.host.spare, r.host.prepared = nil, false
	r.host.mu.Unlock()
	r.host.pool.close()
	if spare != nil {
		spare.abandon()
	}
}

// cell takes the spare one, or starts one. It is nil when there is no operating
// system layer.
func (r *Runner) cell(as *jail.User) *cell {
	r.host.mu.Lock()
	spare := r.host.spare
	r.host.spare = nil
	off := r.Self == "" || r.host.layer != nil && !r.host.layer.On
	r.host.mu.Unlock()
	if off {
		return nil
	}
	if spare != nil {
		select {
		case <-spare.done: // it died while it waited
		default:
			if same(spare.as, as) {
				return spare
			}
			spare.abandon()
		}
	}
	return newCell(r.Self, as)
}

func same(a, b *jail.User) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// Layer finds out, once, whether the operating system layer can be used: it
// starts Deno in it.
func (r *Runner) Layer(ctx context.Context) OSLayer {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	if r.host.layer == nil {
		layer := r.probe(ctx)
		if ctx.Err() != nil {
			return layer
		}
		r.host.layer = &layer
	}
	return *r.host.layer
}

func (r *Runner) probe(ctx context.Context) OSLayer {
	if r.Self == "" {
		return OSLayer{Why: "it is turned off"}
	}
	if err := r.findLibraries(); err != nil {
		return OSLayer{Why: err.Error()}
	}
	var out strings.Builder
	state, err := newCell(r.Self, nil).run(order{ctx: ctx, spec: r.spec([]string{"--version"}, nil, "/", nil)}, nil, &out, io.Discard)
	switch {
	case err != nil:
		return OSLayer{Why: err.Error()}
	case !state.Success() || !strings.HasPrefix(out.String(), "deno "):
		return OSLayer{Why: fmt.Sprintf("Deno does not start in it (%s)", state)}
	}
	return OSLayer{On: true}
}

// findLibraries needs host.mu.
func (r *Runner) findLibraries() (err error) {
	if r.host.libraries == nil {
		r.host.libraries, err = jail.Libraries(r.Deno.Path)
	}
	return err
}

// inLayer does something in the operating system layer if that can be used, and
// otherwise reports which layer is missing. Nobody waits for a test of it first:
// only when it does not start is it asked whether the layer works at all, and
// when it does, the failure is this program's own.
func (r *Runner) inLayer(ctx context.Context, as *jail.User, do func() (*os.ProcessState, error)) (*os.ProcessState, OSLayer, error) {
	r.host.mu.Lock()
	known := r.host.layer
	if known == nil && r.Self != "" && r.findLibraries() != nil {
		r.host.layer = &OSLayer{Why: "the libraries of Deno are not found"}
		known = r.host.layer
	}
	r.host.mu.Unlock()
	if r.Self == "" || known != nil && !known.On {
		return nil, r.Layer(ctx), nil
	}
	state, err := do()
	defer r.prepareNext(as)
	if known == nil && err != nil && ctx.Err() == nil {
		if layer := r.Layer(ctx); !layer.On {
			return nil, layer, nil
		}
	}
	if known == nil && err == nil {
		r.host.mu.Lock()
		r.host.layer = &OSLayer{On: true}
		r.host.mu.Unlock()
	}
	return state, OSLayer{On: true}, err
}

// spec is a jail with Deno, its libraries and the given places.
func (r *Runner) spec(args, env []string, dir string, places []jail.Mount) jail.Spec {
	mounts := append([]jail.Mount{{Path: r.Deno.Path, Kind: jail.Program}}, r.host.libraries...)
	return jail.Spec{Path: r.Deno.Path, Args: append([]string{"deno"}, args...), Env: env, Dir: dir, Mounts: append(mounts, places...)}
}

// places are what a run sees of the file system, besides Deno.
func (a *access) places(s *stage, limits Limits) []jail.Mount {
	return append(a.mounts(), s.places(limits)...)
}

// mounts are the granted places and what is closed in them.
func (a *access) mounts() []jail.Mount {
	kinds := map[string]jail.Kind{}
	for _, path := range a.read {
		if !withinAny(path, a.write) { // there it would be read-only
			kinds[path] = jail.Read
		}
	}
	for _, path := range a.write {
		kinds[existing(path, a.workspace)] = jail.Write
	}
	for _, path := range slices.Concat(a.denyWrite, a.denyRead, a.nested) {
		if withinAny(path, a.read) || withinAny(path, a.write) {
			kinds[path] = jail.Closed
		}
	}
	for _, path := range a.denyWrite {
		if !slices.Contains(a.denyRead, path) && kinds[path] == jail.Closed {
			kinds[path] = jail.Read
		}
	}
	var mounts []jail.Mount
	for path, kind := range kinds {
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink != 0 {
			continue // what is not there, and what leads where there are rules of their own
		}
		mounts = append(mounts, jail.Mount{Path: path, Kind: kind})
	}
	slices.SortFunc(mounts, func(a, b jail.Mount) int { return strings.Compare(a.Path, b.Path) })
	return mounts
}

// existing is path, or the first folder above it that exists and does not leave
// the workspace.
func existing(path, workspace string) string {
	for p := path; within(p, workspace); p = filepath.Dir(p) {
		if _, err := os.Lstat(p); !errors.Is(err, os.ErrNotExist) {
			return p
		}
	}
	return path
}
