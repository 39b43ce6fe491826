package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// sandboxed is a home and a workspace for one test, and the way to run the
// command in them.
type sandboxed struct {
	t         *testing.T
	home, ws  string
	env       []string
	out, errs bytes.Buffer
}

func newSandboxed(t *testing.T, provider *testkit.Provider) *sandboxed {
	t.Helper()
	dir := t.TempDir()
	s := &sandboxed{t: t, home: filepath.Join(dir, "home"), ws: filepath.Join(dir, "ws")}
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
	s.talkTo(provider)
	s.env = append(os.Environ(), "TENDRIL_HOME="+s.home, "HOME="+dir, "OPENAI_API_KEY=sk-test", "DENO_PATH="+testkit.Deno(t), "TMPDIR="+dir)
	return s
}

// talkTo makes provider the one that is configured.
func (s *sandboxed) talkTo(provider *testkit.Provider) {
	s.t.Helper()
	settings, err := json.Marshal(map[string]any{
		"workspace": s.ws,
		"model":     map[string]any{"provider": "openai", "openai": map[string]string{"modelId": "scripted", "baseURL": provider.URL + "/v1"}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.home, "config.json"), settings, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// command is `tendril args…`.
func (s *sandboxed) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tendril", args...)
	cmd.Env = s.env
	s.out.Reset()
	s.errs.Reset()
	cmd.Stdout, cmd.Stderr = &s.out, &s.errs
	return cmd
}

// start starts `tendril args…`.
func (s *sandboxed) start(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := s.command(args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd
}

// wait returns the exit code, and fails when there is none soon.
func (s *sandboxed) wait(cmd *exec.Cmd, within time.Duration) int {
	s.t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			s.t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	case <-time.After(within):
		_ = cmd.Process.Kill()
		<-done
		s.t.Fatalf("still running after %s\n%s", within, s.errs.String())
		return 0
	}
}

// eventually polls a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const sleeper = `await Deno.writeTextFile(__workspace + "/running", "");
await new Promise((r) => setTimeout(r, 60_000));`

// spinner never gives the event loop back.
const spinner = `Deno.writeTextFileSync(__workspace + "/running", "");
for (;;) {}`

func register(name, code string) testkit.Reply {
	args, _ := json.Marshal(map[string]any{
		"definition": map[string]any{"name": name, "capability": "Runs for long.", "triggers": []string{"test asks", "test asks again"}, "suppression": []string{}},
		"code":       code,
	})
	return testkit.OpenAICalls(testkit.Call{ID: "r", Name: "registerCapability", Args: string(args)})
}

func execute(name string) testkit.Reply {
	return testkit.OpenAICalls(testkit.Call{ID: "x", Name: "execute", Args: `{"name":"` + name + `"}`})
}

// TestInterrupt_EndsTheTurnWithEverything: one Ctrl-C ends model stream, gate or
// sandbox; the exit code is 130, what was said stays, no process and no
// temporary file is left (cases C01, C03).
func TestInterrupt_EndsTheTurnWithEverything(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGINT to send")
	}
	hang := hanging("half an answer")
	for name, c := range map[string]struct {
		replies []testkit.Reply
		ready   func(s *sandboxed, p *testkit.Provider) bool
		says    string
	}{
		"in the model's reply": {[]testkit.Reply{hang}, func(s *sandboxed, p *testkit.Provider) bool { return len(p.Requests()) == 1 }, ""},
		"while it sleeps": {[]testkit.Reply{register("sleeper", sleeper), execute("sleeper")}, func(s *sandboxed, _ *testkit.Provider) bool {
			_, err := os.Stat(filepath.Join(s.ws, "running"))
			return err == nil
		}, "✗ sleeper failed"},
		"while it spins": {[]testkit.Reply{register("spinner", spinner), execute("spinner")}, func(s *sandboxed, _ *testkit.Provider) bool {
			_, err := os.Stat(filepath.Join(s.ws, "running"))
			return err == nil
		}, "✗ spinner failed"},
		"in the gate": {[]testkit.Reply{register("sleeper", sleeper)}, func(s *sandboxed, p *testkit.Provider) bool {
			return len(processes("check", s.home)) > 0 || len(processes("check", filepath.Dir(s.home))) > 0
		}, "not registered"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS != "linux" && name == "in the gate" {
				t.Skip("needs /proc to see the checker")
			}
			p := testkit.NewProvider(t, c.replies...)
			s := newSandboxed(t, p)
			cmd := s.start("run", "go")
			eventually(t, name, func() bool { return c.ready(s, p) })
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := s.wait(cmd, 20*time.Second); code != 130 {
				t.Errorf("exit code %d\n%s", code, s.errs.String())
			}
			if !strings.Contains(s.errs.String(), "cancelled") || !strings.Contains(s.errs.String(), c.says) {
				t.Errorf("stderr:\n%s", s.errs.String())
			}
			s.checkNothingIsLeft()
		})
	}
}

// TestInterrupt_OtherSignals: SIGTERM, and SIGHUP when the terminal goes away, end
// a turn as Ctrl-C does.
func TestInterrupt_OtherSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals to send")
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			t.Logf("%s is ignored here, as under nohup, and so by what we start", sig)
			continue
		}
		hang := testkit.OpenAIText("never said")
		hang.Delay = time.Hour
		p := testkit.NewProvider(t, hang)
		s := newSandboxed(t, p)
		cmd := s.start("run", "go")
		eventually(t, "a request", func() bool { return len(p.Requests()) == 1 })
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := s.wait(cmd, 20*time.Second); code != 130 || !strings.Contains(s.errs.String(), "cancelled (1 model call, tokens and cost unknown") {
			t.Errorf("%s: exit code %d\n%s", sig, code, s.errs.String())
		}
		s.checkNothingIsLeft()
	}
}

// TestInterrupt_SecondOneEndsAtOnce: the second Ctrl-C does not wait for
// anything.
func TestInterrupt_SecondOneEndsAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGINT to send")
	}
	p := testkit.NewProvider(t, register("spinner", spinner), execute("spinner"))
	s := newSandboxed(t, p)
	cmd := s.start("run", "go")
	eventually(t, "running", func() bool {
		_, err := os.Stat(filepath.Join(s.ws, "running"))
		return err == nil
	})
	for range 2 {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.wait(cmd, 20*time.Second); code != 130 {
		t.Errorf("exit code %d", code)
	}
	eventually(t, "the sandbox is gone", func() bool { return len(processes(filepath.Dir(s.home))) == 0 })
}

// checkNothingIsLeft fails when a process or a temporary file remains.
func (s *sandboxed) checkNothingIsLeft() {
	s.t.Helper()
	dir := filepath.Dir(s.home)
	eventually(s.t, "all processes are gone", func() bool { return len(processes(dir)) == 0 })
	left, err := filepath.Glob(filepath.Join(dir, "tendril-*"))
	left = slices.DeleteFunc(left, func(path string) bool { return path == filepath.Join(dir, "tendril-workspace") })
	if err != nil || len(left) > 0 {
		s.t.Errorf("left behind: %v %v", left, err)
	}
}

// A registration that dies in the gate takes its checker along and
// leaves nothing that hinders the next turn.
func TestRun_KilledInTheGateLeavesAWorkingRegistry(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc to see the checker")
	}
	p := testkit.NewProvider(t, register("sleeper", sleeper), testkit.OpenAIText("ok"), testkit.OpenAIText("ok"))
	s := newSandboxed(t, p)
	cmd := s.start("run", "go")
	eventually(t, "the gate", func() bool { return len(processes("check", filepath.Dir(s.home))) > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	eventually(t, "the checker died with us", func() bool { return len(processes(filepath.Dir(s.home))) == 0 })
	if code := s.wait(s.start("run", "go"), time.Minute); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs.String())
	}
}

// TestRun_KilledLeavesNoProcess: when the agent dies by SIGKILL, what it started
// dies with it, also code that never looks up, and the jail that waits for the
// next run.
func TestRun_KilledLeavesNoProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills what a dead parent has started")
	}
	for name, source := range map[string]string{"sleeper": sleeper, "spinner": spinner} {
		p := testkit.NewProvider(t, register(name, source), execute(name))
		s := newSandboxed(t, p)
		cmd := s.start("run", "go")
		eventually(t, "running", func() bool {
			_, err := os.Stat(filepath.Join(s.ws, "running"))
			return err == nil
		})
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
		for _, task := range tasks { // each thread has its own
			more, _ := os.ReadFile(task)
			children = append(append(children, ' '), more...)
		}
		if len(strings.Fields(string(children))) == 0 {
			t.Error("no child is seen")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		for _, pid := range strings.Fields(string(children)) {
			eventually(t, name+": process "+pid+" is gone", func() bool {
				_, err := os.Stat("/proc/" + pid)
				return os.IsNotExist(err)
			})
		}
	}
}
