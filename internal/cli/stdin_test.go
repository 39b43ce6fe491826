package cli_test

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// A program that starts us with a pipe and never uses it is not waited for; that
// its prompt went without stdin is said.
func TestRun_OpenPipeOnStdin(t *testing.T) {
	p := testkit.NewProvider(t, testkit.OpenAIText("done"))
	s := newSandboxed(t, p)
	cmd := s.command("run", "go")
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if code := s.wait(cmd, time.Minute); code != 0 || !strings.Contains(s.errs.String(), "stdin is a pipe that has sent nothing for 3s") {
		t.Errorf("exit code %d\n%s", code, s.errs.String())
	}
	if body := string(p.Requests()[0].Body); !strings.Contains(body, `"go"`) {
		t.Errorf("the prompt: %s", body)
	}
}

// TestRun_InterruptedWhileItReadsStdin: one Ctrl-C is enough, also in the middle
// of what is sent.
func TestRun_InterruptedWhileItReadsStdin(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGINT to send")
	}
	s := newSandboxed(t, testkit.NewProvider(t))
	cmd := s.command("run", "go")
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := pipe.Write([]byte("the beginning")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // it reads; earlier is fine, too
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := s.wait(cmd, time.Minute); code != 130 || s.errs.String() != "tendril: interrupted\n" {
		t.Errorf("exit code %d\n%s", code, s.errs.String())
	}
}
