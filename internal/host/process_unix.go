//go:build unix

package host

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate gives a child a process group of its own: a Ctrl-C in the terminal is
// for us, and we end it in order.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(process *os.Process) error { return syscall.Kill(-process.Pid, syscall.SIGKILL) }
