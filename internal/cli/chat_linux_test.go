package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// screen collects what a program writes to its terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// shows reports whether text came since the last call that found its text.
func (s *screen) shows(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := bytes.Index(s.text.Bytes(), []byte(text))
	if i >= 0 {
		s.text.Next(i + len(text))
	}
	return i >= 0
}

// TestChat_AtATerminal: several lines in a prompt, a stopped turn, a question,
// the history, and the way out.
func TestChat_AtATerminal(t *testing.T) {
	asks, _ := json.Marshal(map[string]any{
		"definition": map[string]any{
			"name": "asks", "capability": "Asks.", "triggers": []string{"test asks", "test asks again"}, "suppression": []string{},
			"permissions": map[string]any{"net": []string{"*"}},
		},
		"code": `export default () => "it ran";`,
	})
	register := testkit.OpenAICalls(testkit.Call{ID: "r", Name: "registerCapability", Args: string(asks)})
	p := testkit.NewProvider(t,
		testkit.OpenAIText("first answer"), hanging("half an answer"),
		register, register, testkit.OpenAIText("not now"), register, testkit.OpenAIText("third answer"),
		testkit.OpenAIText("fourth answer"))
	s := newSandboxed(t, p)
	person, program := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tendril", "chat")
	cmd.Env = slices.Concat(s.env, []string{"TERM=xterm-256color"})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	var seen screen
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := person.Read(buffer)
			seen.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	see := func(text string) { t.Helper(); eventually(t, text, func() bool { return seen.shows(text) }) }
	typed := func(text string) {
		t.Helper()
		if _, err := person.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	see("ask for something")
	typed("one\nüber 日本\r") // Ctrl-J is a line feed
	see("first answer")
	see("ask for something")
	typed("two\r")
	see("half an answer")
	typed("\x03")
	see("cancelled")
	see("ask for something")
	typed("three\r")
	see("May asks reach any public host?")
	typed("\x03")
	see("cancelled")
	see("ask for something")
	typed("again\r")
	see("May asks reach any public host?")
	typed("d")
	see("denied")
	see("not now")
	see("ask for something")
	typed("and again\r")
	see("May asks reach any public host?")
	typed("u")
	see("allowed until Tendril ends")
	see("third answer")
	see("ask for something")
	typed("\x1b[A\x1b[A\x1b[A\x1b[A\r") // four up: "two"
	see("fourth answer")
	see("ask for something")
	typed("\x03")
	see("to leave: Ctrl-D")
	typed("\x04")
	_ = cmd.Wait() // its code counts
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	requests := p.Requests()
	for i, want := range map[int]string{0: `one\nüber 日本`, 2: "half an answer", 4: "did not allow asks", 7: `"two"`} {
		if i >= len(requests) {
			t.Fatalf("%d requests", len(requests))
		}
		if !strings.Contains(string(requests[i].Body), want) {
			t.Errorf("request %d lacks %q: %s", i+1, want, requests[i].Body)
		}
	}
	if body := requests[3].Body; strings.Contains(string(body), "did not allow") {
		t.Errorf("Ctrl-C counts as a no: %s", body)
	}
	if n := strings.Count(string(requests[len(requests)-1].Body), `"two"`); n != 2 {
		t.Errorf("the history did not bring the prompt back: it is there %d times", n)
	}
	for _, fault := range testkit.Lint(requests) {
		t.Error(fault)
	}
	if _, err := os.Stat(filepath.Join(s.ws, "tools", "asks.ts")); err != nil {
		t.Error(err)
	}
	s.checkNothingIsLeft()
}
