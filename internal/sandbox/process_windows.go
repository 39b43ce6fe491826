package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// killGroup ends the child. It has no children of its own: Deno is started
// without the permission to run programs.
func killGroup(process *os.Process) error { return process.Kill() }

// exitCode takes the codes of crashes, which have the high bits set, as signals.
func exitCode(state *os.ProcessState) (code int, signaled bool) {
	code = state.ExitCode()
	return code, uint32(code) >= 0x80000000
}

// systemEnv is what any program needs to start.
func systemEnv() []string {
	var env []string
	for _, name := range []string{"SystemRoot", "SystemDrive", "windir"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// lockFolder locks nothing: a folder cannot be locked here.
func lockFolder(string) (unlock func(), err error) { return func() {}, nil }

// leftAfter is longer than any run may take.
const leftAfter = time.Hour

// lockLeft takes an old folder whose process is gone for left.
func lockLeft(path string) (unlock func(), err error) {
	var pid int
	if _, err := fmt.Sscanf(filepath.Base(path), "tendril-run-%d-", &pid); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Release() // a handle
		return nil, errors.New("its process is alive")
	}
	if time.Since(info.ModTime()) < leftAfter {
		return nil, errors.New("it is new")
	}
	return func() {}, nil
}

// isOurs takes what is in the user's own folder for temporary files for theirs.
func isOurs(os.FileInfo) bool { return true }
