package sandbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// warmRunner is one that keeps warm processes.
func warmRunner(t *testing.T) *Runner {
	t.Helper()
	runner := newRunner(t)
	if layer := runner.Layer(t.Context()); !layer.On {
		t.Skip("no operating system layer here: ", layer.Why)
	}
	runner.Prepare(t.TempDir())
	t.Cleanup(runner.Close)
	return runner
}

// waitWarm waits until a process waits for the job.
func waitWarm(t *testing.T, runner *Runner, job Job) *warm {
	t.Helper()
	job.Limits = job.Limits.WithDefaults()
	access, err := newAccess(t.Context(), job, runner.Home)
	if err != nil {
		t.Fatal(err)
	}
	k := (&run{job: job, as: ownerOf(job.Workspace), access: access}).key(runner)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		p := &runner.host.pool
		p.mu.Lock()
		for _, w := range p.waiting {
			if w.key == k {
				p.mu.Unlock()
				return w
			}
		}
		p.mu.Unlock()
	}
	t.Fatal("no process became warm")
	return nil
}

func TestWarm_RunsLikeCold(t *testing.T) {
	runner := warmRunner(t)
	job := Job{Name: "cap", Workspace: t.TempDir(), Args: []byte(`{"n":1,"__proto__":2}`), Source: []byte(`
		import { readFileSync, writeFileSync } from "node:fs";
		const at = __workspace + "/f";
		writeFileSync(at, JSON.stringify(args));
		console.log("line");
		export default (_: unknown, c: { signal: AbortSignal }) => ({ read: readFileSync(at, "utf8"), aborted: c.signal.aborted, age: performance.now() > 0 });`)}
	cold := mustRun(t, runner, job)
	waitWarm(t, runner, job)
	job.Explain = true
	var lines []string
	job.Output = func(_, line string) { lines = append(lines, line) }
	got := mustRun(t, runner, job)
	if cold.Warm || !got.Warm || got.Text != cold.Text || got.Outcome != OK || len(lines) != 1 || len(got.Flags) == 0 {
		t.Errorf("cold %+v\nwarm %+v\nlines %v", cold, got, lines)
	}
	if !strings.Contains(got.Text, `{\"n\":1,\"__proto__\":2}`) {
		t.Errorf("args: %s", got.Text)
	}
}

// numbers differ from run to run: of bytes that were dropped.
var numbers = regexp.MustCompile(`\d+`)

func TestWarm_FailuresLikeCold(t *testing.T) {
	runner := warmRunner(t)
	for _, source := range []string{
		`throw new Error("x")`, `Deno.exit(3)`, `await new Promise(() => {})`, `while (true);`, `console.log("x".repeat(3e6))`,
		`fetch("https://example.com")`, `Deno.readTextFileSync("/etc/passwd")`, `const a = [];for (;;) a.push(new Array(1e6).fill(1))`, "const = 1",
	} {
		job := Job{Name: "cap", Workspace: t.TempDir(), Source: []byte(source), Limits: Limits{Timeout: 2 * time.Second}}
		cold := mustRun(t, runner, job)
		waitWarm(t, runner, job)
		got := mustRun(t, runner, job)
		if !got.Warm || got.Outcome != cold.Outcome || got.ExitCode != cold.ExitCode || numbers.ReplaceAllString(got.Error, "n") != numbers.ReplaceAllString(cold.Error, "n") {
			t.Errorf("%s:\ncold %s %d %q\nwarm %s %d %q", source, cold.Outcome, cold.ExitCode, cold.Error, got.Outcome, got.ExitCode, got.Error)
		}
	}
}

// What decides about a run may change at any time between two runs. None of it
// may be served by a process that was started before.
func TestWarm_RightAfterAChange(t *testing.T) {
	const look = `
		const read = (p: string) => { try { return Deno.readTextFileSync(p); } catch (e) { return (e as Error).name; } };
		const write = (p: string) => { try { Deno.writeTextFileSync(p, "w"); return "ok"; } catch (e) { return (e as Error).name; } };
		export default async () => [read(__workspace + "/a/f"), read(__workspace + "/b/f"), read(__workspace + "/.env"), write(__workspace + "/a/w"), Deno.env.get("TOKEN"),
			await fetch("http://allowed.test/json").then((r) => r.status, () => "none"), __workspace.length > 0];`
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, runner *Runner, job *Job)
		want   string // in the answer
	}{
		{"source", func(_ *testing.T, _ *Runner, job *Job) { job.Source = []byte(`export default () => "other"`) }, "other"},
		{"read", func(_ *testing.T, _ *Runner, job *Job) { job.Grant.Read = []string{"b"} }, `["NotCapable","fb",`},
		{"write", func(_ *testing.T, _ *Runner, job *Job) { job.Grant.Write = []string{} }, `"NotCapable",null`},
		{"net", func(_ *testing.T, _ *Runner, job *Job) { job.Grant.Net = []string{"allowed.test"} }, `200`},
		{"secret", func(_ *testing.T, _ *Runner, job *Job) { job.Secrets = map[string]string{"TOKEN": "new"} }, `"new"`},
		{"folder", func(t *testing.T, _ *Runner, job *Job) {
			job.Workspace = t.TempDir()
			writeTree(t, job.Workspace, "a/f", "another")
		}, `["another"`},
		{"folder replaced", func(t *testing.T, _ *Runner, job *Job) {
			if err := os.Rename(job.Workspace, job.Workspace+".old"); err != nil {
				t.Fatal(err)
			}
			writeTree(t, job.Workspace, "a/f", "replaced")
		}, `["replaced"`},
		{"protected file", func(t *testing.T, _ *Runner, job *Job) { writeTree(t, job.Workspace, ".env", "leak") }, `["fa","fb","NotCapable"`},
		{"nested one", func(t *testing.T, _ *Runner, job *Job) {
			writeTree(t, job.Workspace, "b/.env", "leak")
			job.Source = []byte(`export default () => { try { return Deno.readTextFileSync(__workspace + "/b/.env"); } catch { return "closed"; } }`)
		}, ""},
		{"a link", func(t *testing.T, _ *Runner, job *Job) {
			outside := t.TempDir()
			writeTree(t, outside, "f", "outside")
			if err := os.RemoveAll(filepath.Join(job.Workspace, "a")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, filepath.Join(job.Workspace, "a")); err != nil {
				t.Fatal(err)
			}
		}, `["NotCapable"`},
		{"limits", func(_ *testing.T, _ *Runner, job *Job) { job.Limits.HeapMB = 128 }, `["fa"`},
		{"deno", func(_ *testing.T, runner *Runner, _ *Job) { runner.Deno.Version = "9.9.9" }, `["fa"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runner := warmRunner(t)
			world := newInternet(t, []string{"allowed.test"})
			runner.Resolver, runner.Dial = world, world.dial
			job := Job{Name: "cap", Source: []byte(look), Workspace: filepath.Join(t.TempDir(), "ws"), Secrets: map[string]string{"TOKEN": "old"}}
			job.Secrets = nil
			writeTree(t, job.Workspace, "a/f", "fa")
			writeTree(t, job.Workspace, "b/f", "fb")
			first := mustRun(t, runner, job)
			if !strings.HasPrefix(first.Text, `["fa","fb"`) {
				t.Fatalf("%+v", first)
			}
			waitWarm(t, runner, job)
			tt.change(t, runner, &job)
			got := mustRun(t, runner, job)
			if got.Warm || !strings.Contains(got.Text, tt.want) || strings.Contains(got.Text, "leak") || strings.Contains(got.Text, "outside") {
				t.Errorf("warm %v: %s", got.Warm, got.Text)
			}
		})
	}
}

func writeTree(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWarm_ManyAtOnce(t *testing.T) {
	runner := warmRunner(t)
	ws := t.TempDir()
	var all sync.WaitGroup
	for round := range 4 {
		for i := range 16 {
			all.Go(func() {
				job := Job{
					Name: fmt.Sprintf("cap%d", i%5), Workspace: ws, Args: fmt.Appendf(nil, `{"n":%d}`, i),
					Source: fmt.Appendf(nil, "export default () => %d + ' ' + args.n", i%5),
				}
				got, err := runner.Run(context.Background(), job)
				if want := fmt.Sprintf("%d %d", i%5, i); err != nil || got.Text != want {
					t.Errorf("round %d: want %s, got %+v %v", round, want, got, err)
				}
			})
		}
		all.Wait()
	}
	runner.host.pool.mu.Lock()
	defer runner.host.pool.mu.Unlock()
	if n := len(runner.host.pool.waiting); n > warmMost {
		t.Errorf("%d processes wait", n)
	}
}

func TestWarm_Goes(t *testing.T) {
	job := Job{Name: "cap", Workspace: t.TempDir(), Source: []byte(`export default () => 1`)}
	gone := func(t *testing.T, w *warm) {
		t.Helper()
		select {
		case <-w.cell.done:
		case <-time.After(20 * time.Second):
			t.Fatal("the process is still there")
		}
	}
	t.Run("idle", func(t *testing.T) {
		runner := warmRunner(t)
		runner.host.pool.idle = 50 * time.Millisecond
		runner.Warm(job)
		for { // it may be gone before it is seen
			runner.host.pool.mu.Lock()
			started, waiting := runner.host.pool.starting["cap"], len(runner.host.pool.waiting)
			runner.host.pool.mu.Unlock()
			if !started && waiting == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	t.Run("short memory", func(t *testing.T) {
		runner := warmRunner(t)
		var mu sync.Mutex
		short := false
		runner.host.pool.scarce = func() bool { mu.Lock(); defer mu.Unlock(); return short }
		runner.Warm(job)
		w := waitWarm(t, runner, job)
		mu.Lock()
		short = true
		mu.Unlock()
		gone(t, w)
		if got := mustRun(t, runner, job); got.Warm || got.Text != "1" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("died", func(t *testing.T) {
		runner := warmRunner(t)
		runner.Warm(job)
		w := waitWarm(t, runner, job)
		if err := w.process.Cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if got := mustRun(t, runner, job); got.Text != "1" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("closed", func(t *testing.T) {
		runner := warmRunner(t)
		runner.Warm(job)
		w := waitWarm(t, runner, job)
		runner.Close()
		gone(t, w)
		if _, err := os.Stat(w.stage.root); err == nil {
			t.Error("its folder is still there")
		}
	})
	t.Run("another user of the name", func(t *testing.T) {
		runner := warmRunner(t)
		runner.Warm(job)
		w := waitWarm(t, runner, job)
		changed := job
		changed.Source = []byte(`export default () => 2`)
		mustRun(t, runner, changed)
		waitWarm(t, runner, changed)
		gone(t, w)
	})
}

// A dependency is loaded before the job is there. What it does then is bounded,
// kept apart from the nonce, and part of what the run printed.
func TestWarm_Dependencies(t *testing.T) {
	runner, served := withModules(t)
	if layer := runner.Layer(t.Context()); !layer.On {
		t.Skip("no operating system layer here: ", layer.Why)
	}
	runner.Prepare(t.TempDir())
	t.Cleanup(runner.Close)
	say := func(text string) { served.Publish("eager", pack(text)) }
	for _, tt := range []struct {
		name, text, want string
		warm             bool
	}{
		{"prints", `console.log("loaded"); export default 1;`, "loaded\nran 1", true},
		{"throws", `throw new Error("no");`, "no", true},
		{"exits", `Deno.exit(0);`, "", false},
		{"spins", `const end = Date.now() + 8000; while (Date.now() < end); export default 2;`, "ran 2", false},
		{"reads stdin", `const b = new Uint8Array(1e5); let n = 0; try { n = Deno.stdin.readSync(b) ?? 0; } catch {} console.log("n", n > 0 && n < 100); export default 3;`, "", true},
		{"replaces", `Deno.stdin.readSync = () => null; JSON.parse = () => { throw 1; }; Array.prototype.indexOf = Uint8Array.prototype.indexOf = () => 0; export default 4;`, "ran 4", true},
		{"fetches", `let got = "none"; try { got = (await fetch("http://allowed.test/json")).status; } catch {} export default got;`, "ran none", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			say(tt.text)
			job := Job{Name: "cap", Workspace: t.TempDir(), Source: []byte(`import n from "npm:eager@1.0.0"; console.log("ran", n);`), Limits: Limits{Timeout: 20 * time.Second}}
			lock, err := runner.Lock(t.Context(), "cap", job.Source, nil)
			if err != nil {
				t.Fatal(err)
			}
			job.Lock = lock
			runner.Warm(job)
			if tt.warm {
				waitWarm(t, runner, job)
			}
			got := mustRun(t, runner, job)
			if !strings.Contains(got.Text, tt.want) || tt.warm && tt.name != "reads stdin" && !got.Warm {
				t.Errorf("warm %v: %s", got.Warm, got.Text)
			}
		})
	}
}

// policy is what may change between two runs of a capability.
type policy struct {
	version     int
	folder      int    // which workspace
	read, write string // a, b, all or none
	host        string // that is granted, or ""
	secret      string
	hidden      bool // there is a file .env in the folder b
}

// watchful tells all that it can reach.
const watchful = `
	const read = (p: string) => { try { return Deno.readTextFileSync(__workspace + p); } catch { return "-"; } };
	const write = (p: string) => { try { Deno.writeTextFileSync(__workspace + p, "w"); return "w"; } catch (e) { return "-" + ((e as Error).name === "NotCapable" ? "" : e); } };
	const get = (h: string) => fetch("http://" + h + "/json").then((r) => (r.body?.cancel(), String(r.status)), () => "-");
	export default async () => [%d, read("/a/f"), read("/b/f"), read("/b/.env"), write("/a/w"), write("/b/w"), Deno.env.get("TOKEN")?.length ?? "-",
		await get("allowed.test"), await get("api.allowed.test")].join(" ");`

func (p policy) job(folders []string) Job {
	places := map[string][]string{"a": {"a"}, "b": {"b"}, "all": nil, "none": {}}
	job := Job{
		Name: "cap", Workspace: folders[p.folder], Source: fmt.Appendf(nil, watchful, p.version),
		Grant: Grant{Read: places[p.read], Write: places[p.write]},
	}
	if p.host != "" {
		job.Grant.Net = []string{p.host}
	}
	if p.secret != "" {
		job.Secrets = map[string]string{"TOKEN": p.secret}
	}
	return job
}

// want is what the capability must tell.
func (p policy) want() string {
	when := func(ok bool, text string) string {
		if !ok {
			return "-"
		}
		return text
	}
	reads := func(name string) bool { return p.read == name || p.read == "all" }
	return fmt.Sprint(p.version, " ", when(reads("a"), fmt.Sprint("a", p.folder)), " ", when(reads("b"), fmt.Sprint("b", p.folder)), " - ",
		when(p.writes("a"), "w"), " ", when(p.writes("b"), "w"), " ", when(p.secret != "", strconv.Itoa(len(p.secret))), " ",
		when(p.host == "allowed.test", "200"), " ", when(p.host == "api.allowed.test", "200"))
}

func (p policy) writes(name string) bool { return p.write == name || p.write == "all" }

func (p policy) changed(r *rand.Rand) policy {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	switch r.IntN(7) {
	case 0:
		p.version = r.IntN(3)
	case 1:
		p.folder = 1 - p.folder
	case 2:
		p.read = pick("a", "b", "all", "none")
	case 3:
		p.write = pick("a", "b", "all", "none")
	case 4:
		p.host = pick("allowed.test", "api.allowed.test", "")
	case 5:
		p.secret = pick("", "token-1", "token-22", "token-333")
	case 6:
		p.hidden = !p.hidden
	}
	return p
}

// changePolicies runs a capability again and again while what it may do changes
// at random: no run may see the policy of another one.
func changePolicies(t *testing.T, steps int, seed uint64) {
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	runner, world := warmRunner(t), newInternet(t, []string{"allowed.test", "api.allowed.test"})
	runner.Resolver, runner.Dial = world, world.dial
	folders := []string{t.TempDir(), t.TempDir()}
	for i, folder := range folders {
		writeTree(t, folder, "a/f", fmt.Sprint("a", i))
		writeTree(t, folder, "b/f", fmt.Sprint("b", i))
	}
	p, warm := policy{read: "all", write: "all"}, 0
	for step := range steps {
		if r.IntN(3) > 0 {
			p = p.changed(r)
		}
		for _, folder := range folders {
			if p.hidden {
				writeTree(t, folder, "b/.env", "leak")
			} else {
				os.Remove(filepath.Join(folder, "b/.env"))
			}
		}
		job := p.job(folders)
		if r.IntN(2) == 0 {
			runner.Warm(job)
			time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond) // it is ready, or about to be
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 1 + 3*(r.IntN(4)/3) { // one, or four at once
			all.Go(func() {
				got, err := runner.Run(context.Background(), job)
				mu.Lock()
				defer mu.Unlock()
				if got.Warm {
					warm++
				}
				if err != nil || got.Text != p.want() {
					t.Errorf("step %d: warm %v, %+v:\n got %q %v\nwant %q", step, got.Warm, p, got.Text, err, p.want())
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d runs were warm", warm)
	if warm == 0 || len(world.escapes) > 0 {
		t.Errorf("none was, or something escaped: %v", world.escapes)
	}
}

func TestWarm_ChangingPolicies(t *testing.T) { changePolicies(t, 60, 4) }
