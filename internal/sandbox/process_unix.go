//go:build unix

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// killGroup kills a child and all that it started.
func killGroup(process *os.Process) error {
	err := syscall.Kill(-process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// exitCode follows the shell: 128 and the number of the signal that ended it.
func exitCode(state *os.ProcessState) (code int, signaled bool) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), true
	}
	return state.ExitCode(), false
}

// systemEnv is what any program needs to start.
func systemEnv() []string { return []string{"HOME=/nonexistent"} }

// lockFolder marks a folder as in use until unlock, or the end of this process.
// One that is locked or gone is [errSwept].
func lockFolder(path string) (unlock func(), err error) {
	folder, err := os.Open(path)
	if err == nil {
		err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		var locked, there os.FileInfo
		if locked, err = folder.Stat(); err == nil {
			there, err = os.Lstat(path)
		}
		if err == nil && !os.SameFile(locked, there) {
			err = errSwept
		}
	}
	if err != nil {
		folder.Close() // nil is fine
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EWOULDBLOCK) {
			err = errSwept
		}
		return nil, err
	}
	return func() { folder.Close() }, nil
}

// lockLeft locks a folder whose process is gone.
func lockLeft(path string) (unlock func(), err error) { return lockFolder(path) }

// isOurs reports whether a file belongs to this user, or to one whom root serves.
func isOurs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (os.Geteuid() == 0 || int(stat.Uid) == os.Geteuid())
}
