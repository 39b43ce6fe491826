package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// alive finds the processes whose command line holds a text, by /proc.
func alive(t *testing.T, text string) []int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, entry := range entries {
		line, _ := os.ReadFile(entry) // a process that is gone has none
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(entry))); strings.Contains(string(line), text) && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func gone(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); len(alive(t, text)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes are left: %v", alive(t, text))
		}
	}
}

func TestRunner_Cancel(t *testing.T) {
	for _, name := range []string{"sleep_long", "spin", "timer_keeps_alive", "signals"} {
		t.Run(name, func(t *testing.T) {
			runner, ws := newRunner(t), t.TempDir()
			t.Setenv("TMPDIR", t.TempDir())
			var source []byte
			if name == "signals" {
				source = []byte(`for (const s of ["SIGTERM", "SIGINT", "SIGHUP"] as const) Deno.addSignalListener(s, () => {}); for (;;) {}`)
			} else {
				source = caps(t, name)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			begun := append([]byte(`console.log("begun");`), source...)
			var cancelled time.Time
			got, err := runner.Run(ctx, Job{Name: name, Source: begun, Workspace: ws, Output: func(string, string) { cancelled = time.Now(); cancel() }})
			if err != nil || got.Outcome != Cancelled || !strings.Contains(got.Text, "may remain") || !strings.Contains(got.Text, "begun") {
				t.Error(got, err)
			}
			if took := time.Since(cancelled); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
			gone(t, os.TempDir())
			if entries, _ := os.ReadDir(os.TempDir()); len(entries) > 0 {
				t.Error("files are left", entries)
			}
		})
	}
}

// TestRunner_HostKilled runs a second process that runs a capability, and keeps
// others warm or not, and kills it with a signal that it cannot see.
func TestRunner_HostKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the parent-death signal")
	}
	if os.Getenv("SANDBOX_HOST") != "" {
		runAsHost(t)
		return
	}
	layer := newRunner(t).Layer(t.Context())
	for warm, processes := range map[string]int{"": 1, "warm": 3} {
		t.Run(warm, func(t *testing.T) {
			if warm != "" && !layer.On {
				t.Skip("no operating system layer here: ", layer.Why)
			}
			hostKilled(t, warm, processes)
		})
	}
}

func hostKilled(t *testing.T, warm string, processes int) {
	tmp := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestRunner_HostKilled$")
	cmd.Env = append(os.Environ(), "SANDBOX_HOST="+t.TempDir(), "SANDBOX_WARM="+warm, "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatalf("%q %v", line, err)
	}
	if n := len(alive(t, tmp)); n < processes {
		t.Errorf("%d processes are to be seen, want %d or more", n, processes)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(t, tmp)
}

func runAsHost(t *testing.T) {
	runner := newRunner(t)
	job := Job{Name: "spin", Source: []byte(`console.log("begun"); for (;;) {}`), Workspace: os.Getenv("SANDBOX_HOST"),
		Output: func(_, line string) { os.Stdout.WriteString(line + "\n") }}
	if os.Getenv("SANDBOX_WARM") != "" { // two processes that wait, besides the one that runs
		runner.Layer(t.Context())
		runner.Prepare(job.Workspace)
		for _, name := range []string{"one", "two"} {
			waiting := Job{Name: name, Source: job.Source, Workspace: job.Workspace}
			runner.Warm(waiting)
			waitWarm(t, runner, waiting)
		}
	}
	if _, err := runner.Run(t.Context(), job); err != nil {
		t.Error(err)
	}
}

func TestRunner_ManyAtOnce(t *testing.T) {
	runner, ws := newRunner(t), t.TempDir()
	results := make(chan error, 8)
	for i := range 8 {
		go func() {
			args := json.RawMessage(`{"i":` + strconv.Itoa(i) + `}`)
			got, err := runner.Run(t.Context(), Job{Name: "many", Source: []byte(`export default (a) => a.i`), Args: args, Workspace: ws})
			if err == nil && got.Text != strconv.Itoa(i) {
				err = errors.New(got.Text)
			}
			results <- err
		}()
	}
	for range 8 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestRunner_BadFlagIsACrash(t *testing.T) {
	runner := newRunner(t)
	runner.Self = "" // the proxy would refuse the host first
	job := Job{Name: "flag", Workspace: t.TempDir(), Limits: Limits{}.WithDefaults()}
	access, err := newAccess(t.Context(), job, runner.Home)
	if err != nil {
		t.Fatal(err)
	}
	access.net = []string{"not a host"}
	stage, err := newStage(job.Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stage.Close()
	r := run{job: job, access: access, stage: stage, nonce: newNonce(), begin: time.Now()}
	got, err := r.do(t.Context(), runner)
	if err != nil || got.Outcome != Crashed || !strings.Contains(got.Text, "not a host") {
		t.Errorf("%+v %v", got, err)
	}
}
