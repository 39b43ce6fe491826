//go:build unix

package window

import (
	"os"
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own: the terminal's Ctrl-C and hang-up are ours to answer.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// inherit hands the ends of pipes to a browser: it expects them as files 3 and 4.
func inherit(cmd *exec.Cmd, in, out *os.File) error {
	cmd.ExtraFiles = []*os.File{in, out}
	return nil
}
