package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// After a SIGKILL all that was shown is in the session, the call that was open
// reads as interrupted, the session goes on, and nothing was run again.
func TestSession_LosesNothingToAKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the path of the process that holds a lease is only seen on Linux")
	}
	p := testkit.NewProvider(t, testkit.OpenAIText("one moment"), register("sleeper", sleeper), execute("sleeper"), testkit.OpenAIText("ok"), hanging("half an answer"), testkit.OpenAIText("fine"))
	s := newSandboxed(t, p)
	if code := s.wait(s.start("run", "hello"), time.Minute); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.errs.String())
	}
	cmd := s.start("run", "--continue", "sleep")
	running := filepath.Join(s.ws, "running")
	eventually(t, "running", func() bool { _, err := os.Stat(running); return err == nil })
	second := exec.Command("tendril", "run", "--session", "last", "me too")
	second.Env = s.env
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "is in use by another process") {
		t.Errorf("a second writer: %v\n%s", err, out)
	}
	kill(t, cmd)
	if err := os.Remove(running); err != nil {
		t.Fatal(err)
	}
	if code := s.wait(s.start("run", "--continue", "and?"), time.Minute); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.errs.String())
	}
	last := string(p.Requests()[3].Body)
	for _, want := range []string{"one moment", "interrupted: this call did not finish", `"and?"`} {
		if !strings.Contains(last, want) {
			t.Errorf("the request after the kill lacks %q: %s", want, last)
		}
	}
	if _, err := os.Stat(running); err == nil {
		t.Error("the call was run again")
	}

	cmd = s.start("run", "--continue", "answer")
	eventually(t, "half an answer", func() bool { return strings.Contains(s.shown("last"), "half an answer") })
	if text := s.shown("last"); !strings.Contains(text, "the turn still runs") {
		t.Errorf("while it runs:\n%s", text)
	}
	kill(t, cmd)
	if text := s.shown("last"); !strings.Contains(text, "half an answer") || !strings.Contains(text, "> the turn ended early: interrupted") {
		t.Errorf("what was shown is lost:\n%s", text)
	}
	if code := s.wait(s.start("run", "--continue", "go on"), time.Minute); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.errs.String())
	}
	if last := string(p.Requests()[5].Body); !strings.Contains(last, "half an answer") {
		t.Errorf("the model does not see what was shown: %s", last)
	}
	if text := s.shown("last"); strings.Count(text, "> the turn ended early: interrupted") != 2 {
		t.Errorf("the session does not say what was interrupted:\n%s", text)
	}
	for _, fault := range testkit.Lint(p.Requests()) {
		t.Error(fault)
	}
}

// hanging is a reply that never comes to its end.
func hanging(text string) testkit.Reply {
	hang := testkit.OpenAIText(text)
	if before, _, ok := bytes.Cut(hang.Body, []byte(`"finish_reason":"stop"`)); ok {
		hang.Body = before[:bytes.LastIndex(before, []byte("data:"))]
	}
	hang.End = "hang"
	return hang
}

// lastAsked reads what the person asked last, and whose message is the last one.
func lastAsked(r testkit.Request) (asked, role string) {
	var body struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	_ = json.Unmarshal(r.Body, &body) // the linter tells of bad requests
	for _, m := range body.Messages {
		if role = m.Role; role == "user" {
			asked = m.Content
		}
	}
	return asked, role
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
}

// shown is a session as another process sees it.
func (s *sandboxed) shown(id string) string {
	s.t.Helper()
	cmd := exec.Command("tendril", "session", "show", id)
	cmd.Env = s.env
	text, err := cmd.Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}
