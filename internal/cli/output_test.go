package cli_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// TestOutput_ThatCannotBeWritten is an error of every command; a reader that has
// read enough is none that anybody wants to hear of.
func TestOutput_ThatCannotBeWritten(t *testing.T) {
	p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply { return testkit.OpenAIText("hello") })
	s := newSandboxed(t, p)
	for _, line := range []string{
		"version", "version --json", "--help", "run --help", "completion bash", "config get", "config get --json", "config path", "secret list", "model list anthropic",
		"model list anthropic --json", "setup", "capability list", "capability list --json", "doctor", "doctor --json", "run go", "run --json go", "run --model demo",
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skipf("there is no device that is full: %v", err)
		}
		code, said := s.writeTo(full, strings.Fields(line)...)
		if code != 1 || strings.Count(said, "tendril: the output cannot be written: ") != 1 || strings.Contains(said, "cannot be written: the output") {
			t.Errorf("full: tendril %s: exit code %d, %s", line, code, said)
		}
		reader, closed, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		if code, said := s.writeTo(closed, strings.Fields(line)...); code != 1 || strings.Contains(said, "tendril: ") {
			t.Errorf("closed: tendril %s: exit code %d, %s", line, code, said)
		}
	}
}

// writeTo runs a command with out as its stdout, and returns what it says on
// stderr.
func (s *sandboxed) writeTo(out *os.File, args ...string) (code int, said string) {
	s.t.Helper()
	defer out.Close()
	cmd := exec.Command("tendril", args...)
	cmd.Env = s.env
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = out, &errs
	_ = cmd.Run() // its code counts
	return cmd.ProcessState.ExitCode(), errs.String()
}
