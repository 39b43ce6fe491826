// Package bench measures the built command and its parts. Sources are fresh in
// every iteration, so that no cache flatters.
package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/model"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/sandbox/jail"
	"github.com/tendril-agent/tendril/internal/store"
	"github.com/tendril-agent/tendril/internal/testkit"
)

func TestMain(m *testing.M) {
	jail.Main()
	os.Exit(m.Run())
}

// fresh makes a source that no run has seen.
var serial atomic.Int64

func fresh(body string) string {
	return fmt.Sprintf("// %d-%d\n%s", os.Getpid(), serial.Add(1), body)
}

const trivial = `export default () => 42;`

// BenchmarkStart is from the start of the process to its first model request.
func BenchmarkStart(b *testing.B) {
	bin := build(b)
	var asked atomic.Int64
	p := testkit.NewProviderFunc(b, func(testkit.Request) testkit.Reply {
		asked.Store(time.Now().UnixNano())
		return testkit.OpenAIText("done")
	})
	home := settings(b, p.URL)
	var total time.Duration
	for b.Loop() {
		cmd := exec.Command(bin, "run", "go")
		cmd.Env = append(os.Environ(), "TENDRIL_HOME="+home, "OPENAI_API_KEY=sk-test", "DENO_PATH="+testkit.Deno(b))
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		total += time.Unix(0, asked.Load()).Sub(start)
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms-to-request/op")
}

// BenchmarkTurn is a turn of list, execute, answer against a model that answers
// at once.
func BenchmarkTurn(b *testing.B) {
	w := newWorkshop(b)
	w.register(b, "answer", trivial)
	p := testkit.NewProviderFunc(b, func(r testkit.Request) testkit.Reply {
		switch bytes.Count(r.Body, []byte(`"role":"tool"`)) {
		case 0:
			return testkit.OpenAICalls(testkit.Call{ID: "l", Name: agent.ListTool, Args: `{"query":"answer"}`})
		case 1:
			return testkit.OpenAICalls(testkit.Call{ID: "x", Name: agent.ExecuteTool, Args: `{"name":"answer"}`})
		}
		return testkit.OpenAIText("42")
	})
	ag := w.agent(b, p.URL)
	for b.Loop() {
		session := agent.Session{ID: "s", Log: &agent.MemoryLog{}}
		for e := range ag.Run(b.Context(), session, []agent.Block{agent.Text("go")}) {
			if e.Type == agent.TurnFinished && e.Stop != agent.StopEndTurn {
				b.Fatalf("%+v", e)
			}
		}
	}
}

// BenchmarkRegister is a registration through the whole gate, split by step.
func BenchmarkRegister(b *testing.B) {
	w := newWorkshop(b)
	steps := map[string]time.Duration{}
	for b.Loop() {
		admission := w.register(b, fmt.Sprintf("tool_%d", serial.Add(1)), fresh(trivial))
		for _, s := range admission.Evidence.Steps {
			steps[s.Name] += s.Duration
		}
	}
	for name, d := range steps {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), name+"-ms/op")
	}
}

// BenchmarkExecute is one run of a trivial capability, beside a bare `deno run`
// of the same source in the same process.
func BenchmarkExecute(b *testing.B) {
	deno := testkit.Deno(b)
	b.Run("bare", func(b *testing.B) {
		dir := b.TempDir()
		for b.Loop() {
			file := filepath.Join(dir, fmt.Sprintf("t%d.ts", serial.Add(1)))
			if err := os.WriteFile(file, []byte(fresh(`console.log(42);`)), 0o600); err != nil {
				b.Fatal(err)
			}
			if out, err := exec.Command(deno, "run", "--no-prompt", "--quiet", file).CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
		}
	})
	run := func(b *testing.B, prepare bool, self string) {
		w := newWorkshop(b)
		w.runner.Self = self
		defer w.runner.Close()
		for b.Loop() {
			if prepare {
				b.StopTimer()
				w.runner.Prepare(w.dir)
				time.Sleep(60 * time.Millisecond) // a model takes longer
				b.StartTimer()
			}
			result, err := w.runner.Run(b.Context(), sandbox.Job{Name: "t", Source: []byte(fresh(trivial)), Workspace: w.dir})
			if err != nil || result.Text != "42" {
				b.Fatalf("%v %+v", err, result)
			}
		}
	}
	b.Run("flags", func(b *testing.B) { run(b, false, "") })
	b.Run("cold", func(b *testing.B) { run(b, false, "/proc/self/exe") })
	b.Run("prepared", func(b *testing.B) { run(b, true, "/proc/self/exe") })
}

// BenchmarkWarm runs the same capability in three ways, one after the other in
// each iteration: bare `deno run` with its cache filled, cold in all layers, and
// in a process that waited for it. The numbers are milliseconds to the end, and
// of the warm one to its first line of output as well.
func BenchmarkWarm(b *testing.B) {
	deno := testkit.Deno(b)
	for _, c := range []struct{ name, source string }{
		{"trivial", `console.log(42);`},
		{"node-fs", `import { readdirSync } from "node:fs"; readdirSync("."); console.log(42);`},
		{"npm-zod", `import { z } from "npm:zod@3.25.76"; console.log(z.number().parse(42));`},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkWarm(b, deno, c.source) })
	}
}

func benchmarkWarm(b *testing.B, deno, source string) {
	w := newWorkshop(b)
	w.runner.Self = "/proc/self/exe"
	defer w.runner.Close()
	lock, err := w.runner.Lock(b.Context(), "t", []byte(source), nil)
	if err != nil {
		b.Skip("the dependency cannot be fetched: ", err)
	}
	if layer := w.runner.Layer(b.Context()); !layer.On {
		b.Skip("no operating system layer here: ", layer.Why)
	}
	file, cache := filepath.Join(b.TempDir(), "t.ts"), b.TempDir()
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		b.Fatal(err)
	}
	bare := func() {
		cmd := exec.Command(deno, "run", "--no-prompt", "--quiet", "--allow-read", file)
		cmd.Env = append(os.Environ(), "DENO_DIR="+cache)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	var first time.Duration
	run := func(warm bool) {
		start := time.Now()
		job := sandbox.Job{Name: "t", Source: []byte(source), Lock: lock, Workspace: w.dir, Output: func(string, string) { first += time.Since(start) }}
		result, err := w.runner.Run(b.Context(), job)
		if err != nil || result.Text != "42" || result.Warm != warm {
			b.Fatalf("%v %+v", err, result)
		}
	}
	took := map[string]time.Duration{}
	measure := func(name string, f func()) {
		start := time.Now()
		f()
		took[name] += time.Since(start)
	}
	bare() // fills its cache
	n := 0
	for b.Loop() {
		measure("bare", bare)
		w.runner.Close()
		measure("cold", func() { run(false) })
		w.runner.Prepare(w.dir)
		w.runner.Warm(sandbox.Job{Name: "t", Source: []byte(source), Lock: lock, Workspace: w.dir})
		time.Sleep(700 * time.Millisecond) // a model takes longer
		first = 0
		measure("warm", func() { run(true) })
		took["first"] += first
		n++
	}
	for name, sum := range took {
		b.ReportMetric(float64(sum.Microseconds())/1000/float64(n), name+"-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory is the resident memory of a process after 20 turns.
func BenchmarkMemory(b *testing.B) {
	p := testkit.NewProviderFunc(b, func(r testkit.Request) testkit.Reply {
		if bytes.Count(r.Body, []byte(`"role":"tool"`)) == 0 {
			return testkit.OpenAICalls(testkit.Call{ID: "l", Name: agent.ListTool, Args: `{}`})
		}
		return testkit.OpenAIText("done")
	})
	w := newWorkshop(b)
	ag := w.agent(b, p.URL)
	for b.Loop() {
		session := agent.Session{ID: "s", Log: &agent.MemoryLog{}}
		for range 20 {
			for range ag.Run(b.Context(), session, []agent.Block{agent.Text("go")}) {
			}
		}
	}
	b.ReportMetric(residentMB(b), "MiB")
}

// workshop is an open workspace.
type workshop struct {
	dir      string
	registry *capability.Registry
	runner   *sandbox.Runner
}

func newWorkshop(b *testing.B) *workshop {
	b.Helper()
	home, dir := b.TempDir(), b.TempDir()
	db, err := store.Open(b.Context(), filepath.Join(home, "tendril.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	deno, err := sandbox.Find(sandbox.FindOptions{Home: home, Getenv: func(name string) string {
		if name == "DENO_PATH" {
			return testkit.Deno(b)
		}
		return ""
	}})
	if err != nil {
		b.Fatal(err)
	}
	w := &workshop{dir: dir, runner: &sandbox.Runner{Deno: deno, Home: home}}
	w.registry, err = capability.Open(b.Context(), capability.Options{Workspace: dir, DB: db, Checker: w.runner, Max: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { w.registry.Close() })
	return w
}

func (w *workshop) register(b *testing.B, name, code string) *capability.Admission {
	b.Helper()
	admission, err := w.registry.Register(context.Background(), capability.Definition{
		Name: name, Capability: "Returns the answer.", Triggers: []string{"user asks for the answer", "user asks for 42"}, Suppression: []string{},
	}, code, capability.Provenance{By: capability.ByModel}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return admission
}

func (w *workshop) agent(b *testing.B, url string) *agent.Agent {
	b.Helper()
	m := model.NewOpenAI(model.OpenAIOptions{ModelID: "scripted", APIKey: "sk-test", BaseURL: url + "/v1"})
	executor := &agent.Executor{Registry: w.registry, Runner: w.runner, Workspace: w.dir}
	ag, err := agent.New(agent.Options{Model: m, System: agent.SystemPrompt(w.dir), Tools: agent.Tools(w.registry, executor)})
	if err != nil {
		b.Fatal(err)
	}
	return ag
}

// build compiles the command once for a benchmark.
func build(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "tendril")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "../cmd/tendril").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// settings writes a home whose model is the provider at url.
func settings(b *testing.B, url string) string {
	b.Helper()
	home := b.TempDir()
	raw, err := json.Marshal(map[string]any{
		"workspace": filepath.Join(b.TempDir(), "ws"),
		"model":     map[string]any{"provider": "openai", "openai": map[string]string{"modelId": "scripted", "baseURL": url + "/v1"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.json"), raw, 0o600); err != nil {
		b.Fatal(err)
	}
	return home
}

// residentMB reads VmRSS (Linux only; 0 elsewhere).
func residentMB(b *testing.B) float64 { return residentOf(b, "self") }

// residentOf is residentMB of a process.
func residentOf(b *testing.B, pid string) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}
