package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool holds the warm processes of a Runner, the one that was used last at the
// end.
type pool struct {
	mu       sync.Mutex
	waiting  []*warm
	starting map[string]bool // by name
	running  sync.WaitGroup  // what starts, ends and looks after them
	open     bool            // processes may be started
	closed   chan struct{}   // nil until the first one starts

	// For tests.
	idle   time.Duration
	scarce func() bool // whether memory is short
}

// Warm starts a process for the next run of a job, in the background: its
// arguments and its output do not matter. It does nothing unless
// [Runner.Prepare] was called and the operating system layer is in force.
func (r *Runner) Warm(job Job) {
	job.Limits = job.Limits.WithDefaults()
	r.warmUpAfter(&run{job: job})
}

// warmUpAfter starts a process for what may run again, unless there is one.
func (r *Runner) warmUpAfter(after *run) {
	r.host.mu.Lock()
	on := r.host.prepared && r.host.layer != nil && r.host.layer.On
	r.host.mu.Unlock()
	if !on || r.host.pool.isScarce() {
		return
	}
	job := after.job
	job.Args, job.Output, job.Explain = nil, nil, false
	r.host.pool.begin(job.Name, func(closed <-chan struct{}) *warm { return r.newWarm(job, closed) })
}

// newWarm prepares and starts a process; nil when that does not work.
func (r *Runner) newWarm(job Job, closed <-chan struct{}) *warm {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	access, err := newAccess(ctx, job, r.Home)
	if err != nil {
		return nil
	}
	run := &run{job: job, as: ownerOf(job.Workspace), access: access, nonce: newNonce()}
	k := run.key(r)
	if r.host.pool.has(k) {
		return nil
	}
	if run.prepare(ctx, r) != nil {
		return nil
	}
	if !within(run.stage.tmp(), run.stage.root) { // it would be seen in the workspace while nothing runs
		run.stage.Close()
		return nil
	}
	run.cell = newCell(r.Self, run.as)
	w, err := r.warmed(run, k)
	if err != nil {
		run.stage.Close()
		return nil
	}
	return w
}

// takeWarm hands out the process that waits for a job of this key, if there is
// one.
func (r *Runner) takeWarm(k key) *warm {
	p := &r.host.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.waiting, func(w *warm) bool { return w.key == k })
	if at < 0 {
		return nil
	}
	w := p.waiting[at]
	p.waiting = slices.Delete(p.waiting, at, at+1)
	w.idle.Stop()
	if !w.alive() {
		p.end(w)
		return nil
	}
	return w
}

func (p *pool) has(k key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.waiting, func(w *warm) bool { return w.key == k && w.alive() })
}

func (p *pool) isScarce() bool {
	if p.scarce != nil {
		return p.scarce()
	}
	return memoryIsShort()
}

// begin starts a process in the background, one at a time for a name. It takes
// the place of those of the same capability, which are for what is no longer so,
// and of the one that was not used for the longest time.
func (p *pool) begin(name string, start func(closed <-chan struct{}) *warm) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open {
		return
	}
	if p.closed == nil {
		p.closed, p.starting = make(chan struct{}), map[string]bool{}
		closed := p.closed
		p.running.Go(func() { p.lookAfter(closed) })
	}
	if p.starting[name] {
		return
	}
	p.starting[name] = true
	closed := p.closed
	p.running.Go(func() {
		w := start(closed)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.starting, name)
		if w == nil {
			return
		}
		select {
		case <-closed:
			p.end(w)
			return
		default:
		}
		p.waiting = slices.DeleteFunc(p.waiting, func(old *warm) bool {
			if old.job.Name == name {
				p.end(old)
			}
			return old.job.Name == name
		})
		for len(p.waiting) >= warmMost {
			p.end(p.waiting[0])
			p.waiting = p.waiting[1:]
		}
		p.waiting = append(p.waiting, w)
		idle := p.idle
		if idle == 0 {
			idle = warmIdle
		}
		w.idle = time.AfterFunc(idle, func() { p.remove(w) })
	})
}

// end drops a process in the background. The lock is held.
func (p *pool) end(w *warm) {
	if w.idle != nil {
		w.idle.Stop()
	}
	p.running.Go(w.drop)
}

// remove ends a process if it still waits.
func (p *pool) remove(w *warm) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting, w); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		p.end(w)
	}
}

// lookAfter ends the processes that died, and all when memory is short.
func (p *pool) lookAfter(closed <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-closed:
			return
		case <-ticker.C:
		}
		short := p.isScarce()
		p.mu.Lock()
		p.waiting = slices.DeleteFunc(p.waiting, func(w *warm) bool {
			gone := short || !w.alive()
			if gone {
				p.end(w)
			}
			return gone
		})
		p.mu.Unlock()
	}
}

// allow lets processes be started, until close.
func (p *pool) allow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
}

// close ends all of them, and waits for that.
func (p *pool) close() {
	p.mu.Lock()
	p.open = false
	if p.closed != nil {
		close(p.closed)
		for _, w := range p.waiting {
			p.end(w)
		}
		p.waiting, p.closed = nil, nil
	}
	p.mu.Unlock()
	p.running.Wait()
}
