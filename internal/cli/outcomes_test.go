//go:build linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// endings are capabilities by how a run of them ends.
var endings = map[string]struct{ code, outcome, says string }{
	"value":   {`export default () => "it worked";`, "ok", "it worked"},
	"prints":  {`console.log("it worked");`, "ok", "it worked"},
	"nothing": {`1;`, "ok", "(no output)"},
	"throws":  {`throw new Error("no bread");`, "failed", "no bread"},
	"rejects": {`export default async () => { await 1; throw new Error("no bread"); };`, "failed", "no bread"},
	"exits":   {`console.log("{\"ok\":true}"); Deno.exit(3);`, "failed", "exit code 3"},
	"exits0":  {`Deno.exit(0); export default () => "never";`, "ok", ""},
	"denied":  {`export default () => Deno.readTextFileSync("/etc/shadow");`, "failed", "NotCapable"},
	"sleeps":  {`console.log("it worked"); await new Promise((r) => setTimeout(r, 60_000));`, "timeout", "timed out"},
	"floods":  {`const b = new TextEncoder().encode("x".repeat(65536)); for (let i = 0; i < 80; i++) Deno.stdout.writeSync(b);`, "output_limit", "limit"},
	"eats":    {`const a: unknown[] = []; for (;;) a.push(new Array(1e6).fill(1.5));`, "memory_limit", "memory"},
	"aborts":  {`import process from "node:process"; process.abort();`, "crashed", ""},
}

// TestOutcomes: how a run ended is told alike, and truly, by every way to start
// one: no failure looks like a success, however much it printed.
func TestOutcomes(t *testing.T) {
	names := slices.Sorted(maps.Keys(endings))
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		if at := r.N % (len(names) + 1); at < len(names) {
			return testkit.OpenAI(testkit.Turn{Calls: []testkit.Call{{ID: fmt.Sprintf("x%d", r.N), Name: "execute", Args: `{"name":"` + names[at] + `"}`}}})
		}
		return testkit.OpenAIText("done")
	})
	s := newSandboxed(t, p)
	index := map[string]any{"version": "1.0.0", "capabilities": []any{}}
	for _, name := range names {
		s.tool(name+".ts", endings[name].code)
		index["capabilities"] = append(index["capabilities"].([]any), map[string]any{
			"name": name, "capability": "Ends: " + name + ".", "triggers": []string{"test asks", "test asks again"}, "suppression": []string{},
			"tool_path": name + ".ts", "created": "2026-04-11", "created_by": "human", "version": "1.0.0",
		})
	}
	raw, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	s.tool("index.json", string(raw))
	if code := s.wait(s.start("config", "set", "sandbox.timeoutMs", "3000"), time.Minute); code != 0 {
		t.Fatal(s.errs.String())
	}
	if code := s.wait(s.start("capability", "verify"), 3*time.Minute); code != 0 {
		t.Fatal(s.out.String(), s.errs.String())
	}
	check := func(t *testing.T, front, name string, failed bool, text string) {
		t.Helper()
		want := endings[name]
		if failed != (want.outcome != "ok") || !strings.Contains(text, want.says) {
			t.Errorf("%s: %s: failed %v; want %s with %q:\n%.2000s", front, name, failed, want.outcome, want.says, text)
		}
	}
	t.Run("capability run", func(t *testing.T) {
		for _, name := range names {
			code := s.wait(s.start("capability", "run", "--json", name), time.Minute)
			var x struct{ Outcome, Text string }
			if err := json.Unmarshal(s.out.Bytes(), &x); err != nil || x.Outcome != endings[name].outcome || code != 0 && code != 1 {
				t.Errorf("%s: exit code %d, %v: %s%s", name, code, err, s.out.String(), s.errs.String())
			}
			check(t, "capability run", name, code != 0, x.Text)
		}
	})
	t.Run("run", func(t *testing.T) {
		if code := s.wait(s.start("run", "--json", "go"), 3*time.Minute); code != 0 { // the turn itself went well
			t.Errorf("exit code %d: %s", code, s.errs.String())
		}
		ended := 0
		for line := range strings.Lines(s.out.String()) {
			var e struct {
				Type, Tool string
				Result     struct {
					Status, Text string
					Detail       struct{ Name, Outcome string }
				}
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Type == "tool_call_finished" && e.Result.Detail.Name != "" {
				ended++
				check(t, "run", e.Result.Detail.Name, e.Result.Status == "failed", e.Result.Text)
			}
		}
		if ended != len(names) {
			t.Errorf("%d calls ended:\n%s", ended, s.out.String())
		}
	})
	t.Run("acp", func(t *testing.T) {
		c := s.acp("--workspace", s.ws)
		c.answer(c.prompt(c.begin(), "go"))
		ended := 0
		for _, m := range c.seen {
			if status := m.Params.Update.Status; m.isUpdate("tool_call_update") && (status == "completed" || status == "failed") {
				check(t, "acp", names[ended], status == "failed", string(m.Params.Update.Content))
				ended++
			}
		}
		if ended != len(names) {
			t.Errorf("%d calls ended", ended)
		}
		c.done()
	})
	t.Run("mcp", func(t *testing.T) {
		m := &mcpServer{sandboxed: &sandboxed{t: t, home: s.home, ws: s.ws, env: s.env}}
		m.start("--workspace", s.ws)
		m.send(hello)
		for i, name := range names {
			m.call(fmt.Sprint(i), "execute", map[string]any{"name": name})
			r := m.answer(fmt.Sprint(i))
			check(t, "mcp", name, r.Result.IsError, r.text())
		}
		m.in.Close()
		m.ends(20 * time.Second)
	})
	t.Run("host", func(t *testing.T) {
		s := &sandboxed{t: t, home: s.home, ws: s.ws, env: s.env}
		c := s.host()
		c.ready()
		for _, name := range names {
			var run host.CapabilityRun
			c.must("POST", "/api/capabilities/"+name+"/run", map[string]any{}, &run)
			check(t, "host", name, run.Status != "ok", run.Output)
			if run.Status != endings[name].outcome {
				t.Errorf("%s: %s", name, run.Status)
			}
		}
		id := c.newSession()
		c.prompt(id, "go")
		c.turn(id)
		ended := 0
		for _, item := range c.items[id] {
			if item.Tool != nil {
				check(t, "the host's chat", names[ended], item.Tool.Status == "failed", item.Tool.Output)
				ended++
			}
		}
		if ended != len(names) {
			t.Errorf("%d calls ended", ended)
		}
		c.done()
	})
}

// TestResultFiles: the files that a run wrote are handed to the person: an editor
// gets small pictures themselves and links to the rest, the app what they are.
func TestResultFiles(t *testing.T) {
	const draw = `const png = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 0, 0]);
const big = new Uint8Array(2 << 20); big.set(png);
Deno.writeFileSync("small.png", png);
Deno.writeFileSync("big.png", big);
Deno.writeTextFileSync("data.csv", "a,b");
export default () => ({ files: ["small.png", "big.png", "data.csv"] });`
	for _, front := range []string{"acp", "host"} {
		s := newSandboxed(t, testkit.NewProvider(t, register("draw", draw), execute("draw"), testkit.OpenAIText("done")))
		if front == "acp" {
			c := s.acp()
			c.answer(c.prompt(c.begin(), "go"))
			at := slices.IndexFunc(c.seen, func(m acpMessage) bool { return m.Params.Update.CallID == "x" && m.Params.Update.Status == "completed" })
			if at < 0 {
				t.Fatalf("no run: %s", c.seen[len(c.seen)-1].raw)
			}
			var blocks []struct {
				Content struct{ Type, Text, Data, MimeType, URI, Name string }
			}
			if err := json.Unmarshal(c.seen[at].Params.Update.Content, &blocks); err != nil || len(blocks) != 4 {
				t.Fatalf("%v: %s", err, c.seen[at].raw)
			}
			small, big, data := blocks[1].Content, blocks[2].Content, blocks[3].Content
			if small.Type != "image" || small.MimeType != "image/png" || small.Data != "iVBORw0KGgoAAA==" || !strings.HasSuffix(small.URI, "/small.png") ||
				big.Type != "resource_link" || big.Name != "big.png" || big.Data != "" || data.Type != "resource_link" || data.MimeType != "text/csv" {
				t.Errorf("%+v", blocks)
			}
			c.done()
			continue
		}
		c := s.host()
		c.ready()
		id := c.newSession()
		c.prompt(id, "go")
		c.turn(id)
		want := []host.ResultFile{{Path: "small.png", MediaType: "image/png", Bytes: 10}, {Path: "big.png", MediaType: "image/png", Bytes: 2 << 20}, {Path: "data.csv", MediaType: "text/csv", Bytes: 3}}
		for _, item := range c.items[id] {
			if item.Tool != nil && item.Tool.Tool == "execute" && (!slices.Equal(item.Tool.Files, want) || item.Tool.Outcome != "ok") {
				t.Errorf("%+v", item.Tool)
			}
		}
		var run host.CapabilityRun
		c.must("POST", "/api/capabilities/draw/run", map[string]any{}, &run)
		if !slices.Equal(run.Files, want) {
			t.Errorf("%+v", run)
		}
		c.done()
	}
}
