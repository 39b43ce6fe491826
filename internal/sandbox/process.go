package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// waitDelay bounds how long a dead child's pipes are waited for.
const waitDelay = time.Second

// runGroup runs a command made by [exec.CommandContext] as the leader of its
// own process group. When its context ends the whole group is killed, and on
// Linux also when we die in whatever way.
//
// started, if it is set, is called with the process's number, and what it
// returns after the end.
//
// The error is nil when the process ended, with whatever code; how it ended is
// in the state.
func runGroup(cmd *exec.Cmd, started func(pid int) (ended func())) (*os.ProcessState, error) {
	// The kernel sends the parent-death signal when the thread that started the
	// child ends: this thread has to live as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	isolate(cmd)
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = waitDelay
	err := cmd.Start()
	if err != nil {
		return nil, err
	}
	ended := func() {}
	if started != nil {
		ended = started(cmd.Process.Pid)
	}
	err = cmd.Wait()
	ended()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) || cmd.ProcessState.Exited() {
		return cmd.ProcessState, nil
	}
	return cmd.ProcessState, err
}

// boundedBuffer keeps the first bytes that are written to it and swallows the
// rest, so that a child can neither fill our memory nor block.
type boundedBuffer struct {
	buf  []byte
	More bool // something was swallowed
}

const boundedBytes = 8 << 20

func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := boundedBytes - len(b.buf)
	if len(p) > room {
		b.More = true
		b.buf = append(b.buf, p[:room]...)
		return len(p), nil
	}
	b.buf = append(b.buf, p...)
	return len(p), nil
}

// Bytes returns what was kept.
func (b *boundedBuffer) Bytes() []byte { return b.buf }
