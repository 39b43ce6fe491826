package window

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// errNoDisplay is why a desktop program is not even tried.
var errNoDisplay = errors.New("there is no display (DISPLAY and WAYLAND_DISPLAY are not set)")

// process is the program that shows a window.
type process struct {
	stop   context.CancelFunc
	exited chan struct{}
	err    error // set before exited is closed: nil after a good end, or when it was stopped
}

// start runs a window's program, a command made by [exec.CommandContext] with ctx. When ctx is done it is
// asked to end by closing what it reads; after closeLimit it is killed. explain makes a better error of a
// bad end; its second argument is what the program said to stderr at last.
func start(ctx context.Context, stop context.CancelFunc, cmd *exec.Cmd, reads io.Closer, explain func(error, string) error) (*process, error) {
	detach(cmd)
	cmd.Cancel = reads.Close
	cmd.WaitDelay = closeLimit
	var stderr tail
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		stop()
		return nil, err
	}
	p := &process{stop: stop, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		defer stop()
		err := cmd.Wait()
		if err != nil && ctx.Err() == nil && !cmd.ProcessState.Success() { // a grandchild may have kept stderr open: no matter
			p.err = explain(err, stderr.lastLine())
		}
	}()
	return p, nil
}

// await waits for the first of: the page is shown, the process ended, the limit is over, ctx is done. After
// an error the process is gone.
func (p *process) await(ctx context.Context, shown <-chan error) error {
	limit := time.NewTimer(openLimit)
	defer limit.Stop()
	var err error
	select {
	case err = <-shown:
		if err == nil {
			return nil
		}
	case <-p.exited:
		if p.err != nil {
			return p.err
		}
		return errors.New("it ended at once")
	case <-limit.C:
		err = fmt.Errorf("it did not show the page within %s", openLimit)
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.stop()
	<-p.exited
	if p.err != nil { // it ended by itself, too
		err = fmt.Errorf("%w (%w)", err, p.err)
	}
	return err
}

// window is the process as a Window.
func (p *process) window(kind Kind, raise func(url string) error) *Window {
	w := &Window{kind: kind, raise: raise, stop: p.stop, closed: make(chan struct{})}
	go func() {
		<-p.exited
		w.err = p.err
		close(w.closed)
	}()
	return w
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) lastLine() string {
	text := strings.TrimSpace(string(t.text))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
