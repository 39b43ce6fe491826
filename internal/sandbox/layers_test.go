//go:build unix

package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestRunner_LayerIsInForce fails where the operating system layer is missing
// although the system can do it: all else would pass without.
func TestRunner_LayerIsInForce(t *testing.T) {
	runner := newRunner(t)
	if runner.Self == "" {
		t.Skip("without the operating system layer, as asked")
	}
	layer := runner.Layer(t.Context())
	if !layer.On {
		if reason := namespacesMissing(); reason != "" {
			t.Skip("no operating system layer here: ", reason)
		}
		t.Fatal(layer.Why)
	}
	source := `export default () => ({uid: Deno.uid(), host: Deno.hostname(), pid: Deno.pid})`
	got := mustRun(t, runner, Job{Name: "look", Source: []byte(source), Workspace: t.TempDir()})
	if got.Text != `{"uid":1000,"host":"sandbox","pid":1}` {
		t.Error(got.Text)
	}
}

// namespacesMissing says why this system cannot have the layer, "" if it can.
func namespacesMissing() string {
	if runtime.GOOS != "linux" {
		return "not Linux"
	}
	out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "--mount-proc", "true").CombinedOutput()
	if err != nil {
		return strings.TrimSpace(string(out)) + " " + err.Error()
	}
	return ""
}

// TestSweep removes what is left of a killed process, also what lies elsewhere,
// and nothing else.
func TestSweep(t *testing.T) {
	base, workspace := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", base)
	t.Setenv("XDG_RUNTIME_DIR", "")
	left := func(source string) *stage {
		s, err := newStage("left", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		s.unlock() // as the end of a process does
		return s
	}
	plain, moved := left(""), left("tmpdir")
	if err := moved.placeTmp([]string{workspace}, []byte("tmpdir")); err != nil {
		t.Fatal(err)
	}
	if moved.tmpDir == filepath.Join(moved.root, "tmp") {
		t.Fatal("its temporary files are not elsewhere")
	}
	lying := left("") // its note names what is not ours
	used, err := newStage("used", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	other := filepath.Join(base, "other")
	if err := errors.Join(os.Mkdir(other, 0o700), os.WriteFile(lying.tmpNote(), []byte(other), 0o400)); err != nil {
		t.Fatal(err)
	}
	sweep(base)
	for _, path := range []string{plain.root, moved.root, moved.tmpDir, lying.root} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	for _, path := range []string{used.source(), other, workspace} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestSweep_WhileStagesAreMade never takes one that is in use.
func TestSweep_WhileStagesAreMade(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var group sync.WaitGroup
	var done atomic.Bool
	group.Go(func() {
		for !done.Load() {
			sweep(os.TempDir())
		}
	})
	for range 200 {
		s, err := newStage("used", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(s.source()); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	group.Wait()
}

// TestRunner_EndsWhileItStarts ends runs at every moment of their start: each is
// told as what it is.
func TestRunner_EndsWhileItStarts(t *testing.T) {
	runner := newRunner(t)
	job := Job{Name: "early", Source: []byte(`for (;;);`), Workspace: t.TempDir()}
	for after := time.Microsecond; after < 100*time.Millisecond; after = after*3/2 + time.Microsecond {
		job.Limits.Timeout = after
		if got, err := runner.Run(t.Context(), job); err != nil || got.Outcome != TimedOut {
			t.Errorf("out of time after %s: %s %v", after, got.Outcome, err)
		}
		job.Limits.Timeout = 0
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if got, err := runner.Run(ctx, job); err != nil || got.Outcome != Cancelled {
			t.Errorf("cancelled after %s: %s %v", after, got.Outcome, err)
		}
		cancel()
	}
}

// TestRunner_WorkspaceOfAnotherUser: root works in somebody else's folder, which
// stays theirs, and reaches no more than they could.
func TestRunner_WorkspaceOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("only root can make such a folder")
	}
	runner := newRunner(t)
	if layer := runner.Layer(t.Context()); !layer.On {
		t.Skip("no operating system layer here: ", layer.Why)
	}
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "of-root"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(ws, 4321, 4322); err != nil {
		t.Skip(err)
	}
	defer runner.Close()
	source := `export default (_a, { tmp }) => {
		Deno.writeTextFileSync(__workspace + "/new", "x"); Deno.writeTextFileSync(tmp + "/t", "x");
		let root = "refused"; try { root = Deno.readTextFileSync(__workspace + "/of-root") } catch {}
		return Deno.uid() + " " + root }`
	for range 3 { // with and without a prepared one
		got := mustRun(t, runner, Job{Name: "other", Source: []byte(source), Workspace: ws})
		if got.Text != "1000 refused" {
			t.Error(got.Text)
		}
		runner.Prepare(ws)
	}
	info, err := os.Stat(filepath.Join(ws, "new"))
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 4321 || stat.Gid != 4322 {
		t.Errorf("the new file belongs to %d:%d", stat.Uid, stat.Gid)
	}
}
