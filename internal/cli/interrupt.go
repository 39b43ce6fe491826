package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// interrupts turns signals into the ends of contexts.
type interrupts struct {
	exit   func(code int)
	mu     sync.Mutex
	cancel []context.CancelFunc // those that were not called yet; Ctrl-C calls the last
}

// interruptible returns a context that the first Ctrl-C, SIGTERM or SIGHUP ends;
// one more ends the process at once. Children die with it. That nobody reads
// stdout any more is an error of writing to it, no signal.
func interruptible(std Std) (context.Context, *interrupts, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	i := &interrupts{exit: std.Exit, cancel: []context.CancelFunc{cancel}}
	signals, ignored := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup makes it
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(ignored, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				i.interrupt(s == os.Interrupt)
			case <-done:
				return
			}
		}
	}()
	return ctx, i, func() {
		signal.Stop(signals)
		signal.Stop(ignored)
		close(done)
		cancel()
	}
}

// interrupt ends what runs innermost, or all.
func (i *interrupts) interrupt(innermost bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.cancel) == 0 {
		i.exit(exitInterrupted)
		return
	}
	keep := 0
	if innermost {
		keep = len(i.cancel) - 1
	}
	for _, cancel := range i.cancel[keep:] {
		cancel()
	}
	i.cancel = i.cancel[:keep]
}

// scope returns a context that Ctrl-C ends instead of the program, until stop.
// A second Ctrl-C in it ends the program.
func (i *interrupts) scope(ctx context.Context) (inner context.Context, stop func()) {
	inner, cancel := context.WithCancel(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	outer := i.cancel
	i.cancel = append(slices.Clone(outer), cancel)
	return inner, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if ctx.Err() == nil {
			i.cancel = outer
		}
		cancel()
	}
}
