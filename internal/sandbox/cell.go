package sandbox

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"

	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

// cell is one process in the operating system layer. It is started before it is
// known what will run in it, because that takes most of the time: it waits in
// its namespaces, without a network, for an order.
//
// Its goroutine is locked to the thread that started the process until that is
// gone, since the kernel kills the process when the thread ends.
type cell struct {
	as     *jail.User // nil: us
	orders chan order
	ready  chan struct{} // closed when the process was started, or could not be
	done   chan struct{} // closed when the process is gone
	stdin  *os.File      // our end, once it is ready
	stdout lateWriter
	stderr lateWriter
	used   bool // run was called

	// What came of it, once done is closed.
	state *os.ProcessState
	err   error // it could not be set up
}

// order is what a cell becomes.
type order struct {
	ctx  context.Context // ends the process
	spec jail.Spec
	// group, if it is set, takes the process in before it becomes anything.
	group *cgroup
	// stop is told why the kernel ended the process, if it was for a limit.
	stop func(cause error)
	// entered is called when the program runs, and its result after its end.
	entered func(*jail.Process) (ended func())
}

// lateWriter drops what is written before it has a target.
type lateWriter struct{ target atomic.Pointer[io.Writer] }

func (w *lateWriter) Write(p []byte) (int, error) {
	if target := w.target.Load(); target != nil {
		return (*target).Write(p)
	}
	return len(p), nil
}

// newCell starts a process, in the background. Exactly one of run and abandon
// must follow.
func newCell(self string, as *jail.User) *cell {
	c := &cell{as: as, orders: make(chan order), ready: make(chan struct{}), done: make(chan struct{})}
	go c.live(self)
	return c
}

// abandon ends a cell that was not needed. A nil or used one is left alone.
func (c *cell) abandon() {
	if c == nil || c.used {
		return
	}
	c.used = true
	close(c.orders)
	<-c.done
}

// run gives the order and waits for the end. It may be called once.
func (c *cell) run(o order, in []byte, stdout, stderr io.Writer) (*os.ProcessState, error) {
	if err := c.enter(o, stdout, stderr); err != nil {
		return nil, err
	}
	return c.finish(in)
}

// enter gives the order. It may be called once, and finish must follow.
func (c *cell) enter(o order, stdout, stderr io.Writer) error {
	c.used = true
	<-c.ready
	c.stdout.target.Store(&stdout)
	c.stderr.target.Store(&stderr)
	select {
	case c.orders <- o:
		return nil
	case <-c.done:
		o.group.close()
		return c.err
	}
}

// finish writes what is left of the input and waits for the end.
func (c *cell) finish(in []byte) (*os.ProcessState, error) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer c.stdin.Close()
		_, _ = c.stdin.Write(in) // a program that ended early reads less
	}()
	<-c.done
	<-written
	if c.err != nil {
		return nil, c.err
	}
	return c.state, nil
}

func (c *cell) live(self string) {
	defer close(c.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, err := c.start(self)
	c.err = err
	close(c.ready)
	if err != nil {
		return
	}
	o, ok := <-c.orders
	if !ok {
		process.Abandon()
		c.stdin.Close()
		_ = process.Cmd.Wait() // nobody wants its outcome
		return
	}
	stop := context.AfterFunc(o.ctx, func() { _ = process.Cmd.Process.Kill() })
	defer stop()
	ended := func() {}
	if o.group != nil {
		defer o.group.close()
		_ = o.group.add(process.Cmd.Process.Pid) // the watcher keeps the same limits
	}
	if c.err = process.Enter(o.spec); c.err == nil && o.entered != nil {
		ended = o.entered(process)
	}
	_ = process.Cmd.Wait() // the state says how it ended
	if o.group != nil && o.group.killedForMemory() {
		o.stop(&limitError{OutOfMemory, "used more memory than its control group may"})
	}
	c.state = process.Cmd.ProcessState
	ended()
}

func (c *cell) start(self string) (*jail.Process, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{Stdin: theirs, Stdout: &c.stdout, Stderr: &c.stderr, WaitDelay: waitDelay}
	process, err := jail.Command(cmd, self, c.as)
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		ours.Close()
		return nil, err
	}
	c.stdin = ours
	return process, nil
}
