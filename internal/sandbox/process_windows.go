package sandbox

import (
	"os"
	"os/exec"
	"syscall"
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

// isAlive reports whether there is a process with that number.
func isAlive(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = process.Release() // a handle
	return true
}

// isOurs takes what is in the user's own folder for temporary files for theirs.
func isOurs(os.FileInfo) bool { return true }
