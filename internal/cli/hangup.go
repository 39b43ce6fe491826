package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// hangUpEvery is how often a silent server looks whether its client is there.
const hangUpEvery = 500 * time.Millisecond

var errHungUp = errors.New("the client does not take our output any more")

// untilHungUp is for a protocol on stdout. It ends the context, because of
// [errHungUp], when nobody reads out any more: without this a turn or a call that
// prints nothing would run to its end for a client that is gone. Until stop, a
// write that nobody reads fails instead of killing the process, so that there is
// time to end in order.
func untilHungUp(ctx context.Context, out io.Writer) (_ context.Context, stop func()) {
	pipe := make(chan os.Signal, 1) // nobody reads it; to ignore the signal would make children ignore it
	signal.Notify(pipe, syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	stop = func() {
		cancel(nil)
		signal.Stop(pipe)
	}
	if o, ok := out.(*output); ok {
		out = o.w
	}
	file, ok := out.(*os.File)
	if !ok {
		return ctx, stop
	}
	go func() {
		tick := time.NewTicker(hangUpEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if hungUp(file) {
					cancel(errHungUp)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, stop
}
