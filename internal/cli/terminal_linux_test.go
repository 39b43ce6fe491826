package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns the two ends of a new terminal: what a person has, and
// what a program has.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// TestSecret_Typed: what is typed is never shown, Ctrl-C and Ctrl-D give up, and
// the terminal is left as it was.
func TestSecret_Typed(t *testing.T) {
	for _, tt := range []struct {
		name, typed string
		code        int
		kept        string
	}{
		{"enter", "canary\r", 0, "canary"},
		{"a mistake", "canarx\x7fy\r", 0, "canary"},
		{"a long one", strings.Repeat("canary", 300) + "\r", 0, strings.Repeat("canary", 300)},
		{"ctrl-d", "\x04", 130, ""},
		{"ctrl-c", "canary\x03", 130, ""},
		{"nothing", "\r", 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			person, program := openTerminal(t)
			before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			home := t.TempDir()
			cmd := exec.Command("tendril", "secret", "set", "OPENAI_API_KEY")
			cmd.Env = append(os.Environ(), "TENDRIL_HOME="+home, "HOME="+home, "OPENAI_API_KEY=", "TEST_KEYCHAIN=")
			var errs strings.Builder
			cmd.Stdin, cmd.Stderr = program, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the terminal hides what is typed", func() bool {
				now, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
				return err == nil && now.Lflag&unix.ECHO == 0
			})
			if _, err := person.WriteString(tt.typed); err != nil {
				t.Fatal(err)
			}
			stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer stuck.Stop()
			_ = cmd.Wait() // its code counts
			if code := cmd.ProcessState.ExitCode(); code != tt.code || strings.Contains(errs.String(), "canary") {
				t.Errorf("exit code %d: %s", code, errs.String())
			}
			if after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS); err != nil || *after != *before {
				t.Errorf("the terminal was changed: %v, %+v", err, after)
			}
			raw, _ := os.ReadFile(filepath.Join(home, "secrets.json")) // there is none when nothing is kept
			if strings.Contains(string(raw), "OPENAI_API_KEY") != (tt.kept != "") || !strings.Contains(string(raw), tt.kept) {
				t.Errorf("kept: %s", raw)
			}
		})
	}
}
