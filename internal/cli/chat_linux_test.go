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

// person is somebody at a terminal in which a program runs.
type person struct {
	t       *testing.T
	keys    *os.File
	program *os.File // the program's end
	before  unix.Termios
	cmd     *exec.Cmd
	screen  screen
}

// atTerminal starts `tendril args…` in a terminal of its own.
func (s *sandboxed) atTerminal(args ...string) *person {
	s.t.Helper()
	keys, program := openTerminal(s.t)
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		s.t.Fatal(err)
	}
	p := &person{t: s.t, keys: keys, program: program}
	p.before = p.termios()
	p.cmd = exec.Command("tendril", args...)
	p.cmd.Env = slices.Concat(s.env, []string{"TERM=xterm-256color"})
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = program, program, program
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	stuck := time.AfterFunc(5*time.Minute, func() { _ = p.cmd.Process.Kill() })
	s.t.Cleanup(func() { stuck.Stop() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := keys.Read(buffer)
			p.screen.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *person) termios() unix.Termios {
	p.t.Helper()
	now, err := unix.IoctlGetTermios(int(p.program.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *now
}

func (p *person) see(text string) {
	p.t.Helper()
	eventually(p.t, text, func() bool { return p.screen.shows(text) })
}

func (p *person) typed(text string) {
	p.t.Helper()
	if _, err := p.keys.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// left waits for the program's end, which leaves the terminal as it was.
func (p *person) left(code int) {
	p.t.Helper()
	_ = p.cmd.Wait() // its code counts
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
	if after := p.termios(); after != p.before {
		p.t.Errorf("the terminal was changed: %+v", after)
	}
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
	person := s.atTerminal("chat")
	see, typed := person.see, person.typed
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
	person.left(0)
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

// TestChat_TypedWhileATurnRuns: it is not shown in the middle of an answer, and is
// the draft of the next prompt, also after Ctrl-C and a question, which it does
// not answer.
func TestChat_TypedWhileATurnRuns(t *testing.T) {
	asks, _ := json.Marshal(map[string]any{
		"definition": map[string]any{
			"name": "asks", "capability": "Asks.", "triggers": []string{"test asks", "test asks again"}, "suppression": []string{},
			"permissions": map[string]any{"net": []string{"*"}},
		},
		"code": `export default () => "it ran";`,
	})
	slow := testkit.OpenAICalls(testkit.Call{ID: "r", Name: "registerCapability", Args: string(asks)})
	slow.Delay = 3 * time.Second
	p := testkit.NewProvider(t, hanging("half an answer"), slow, testkit.OpenAIText("second answer"))
	s := newSandboxed(t, p)
	person := s.atTerminal("chat")
	person.see("ask for something")
	person.typed("one\r")
	person.see("half an answer")
	person.typed("\x1b[Anext th\x7fhing\r\x03")
	person.see("cancelled")
	person.see("next thing")
	person.typed("!\r")
	eventually(t, "the second request", func() bool { return len(p.Requests()) == 2 })
	person.typed("a")
	person.see("May asks reach any public host?")
	person.typed("d")
	person.see("denied")
	person.see("second answer")
	person.see("› a") // the draft
	person.typed("\x03\x04")
	person.left(0)
	if body := string(p.Requests()[1].Body); !strings.Contains(body, `"next thing!"`) {
		t.Errorf("the draft was not sent: %s", body)
	}
	if _, err := os.Stat(filepath.Join(s.ws, "tools", "asks.ts")); err == nil {
		t.Error("what was typed before the question has answered it")
	}
}

// TestRun_HidesWhatIsTyped: however a turn ends, the terminal shows again what is
// typed, and the turn's screen has nothing of it.
func TestRun_HidesWhatIsTyped(t *testing.T) {
	for name, c := range map[string]struct {
		stop func(*person)
		code int
	}{
		"ctrl-c":  {func(p *person) { p.typed("\x03") }, 130},
		"twice":   {func(p *person) { p.typed("\x03\x03") }, 130},
		"sigterm": {func(p *person) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, 130},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandboxed(t, testkit.NewProvider(t, hanging("half an answer")))
			person := s.atTerminal("run", "go")
			person.see("half an answer")
			if now := person.termios(); now.Lflag&unix.ECHO != 0 {
				t.Error("what is typed is shown")
			}
			person.typed("garbage\r")
			c.stop(person)
			person.left(c.code)
			if person.screen.shows("garbage") {
				t.Error("what was typed is on the screen")
			}
		})
	}
}
