package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// A line of any length up to the limit works; a longer one gets one error and
// the next is served (case P03).
func TestACP_LongLines(t *testing.T) {
	p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply { return testkit.OpenAIText("ok") })
	c := newSandboxed(t, p).acp()
	sid := c.begin()
	for _, size := range []int{70 << 10, 1 << 20, 20 << 20} {
		if m := c.answer(c.prompt(sid, strings.Repeat("x", size))); m.Result.StopReason != "end_turn" {
			t.Errorf("%d bytes: %.300s", size, m.raw)
		}
	}
	c.prompt(sid, strings.Repeat("x", 64<<20))
	if m := c.answer("null"); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("too long: %.300s", m.raw)
	}
	fresh := c.newSession()
	if m := c.answer(c.prompt(fresh, "again")); m.Result.StopReason != "end_turn" {
		t.Errorf("then: %.300s", m.raw)
	}
	c.done()

	c = c.s.acp()
	c.answer(c.request("session/load", map[string]any{"sessionId": sid, "cwd": c.folder, "mcpServers": []any{}}))
	if n := len(c.seen); n != 7 {
		t.Errorf("%d messages of a replay of 3 turns", n)
	}
	c.done()
}

// When stdin or stdout closes, turn, capability and process end, and the session
// says what happened (case C07).
func TestACP_EndsWithItsStreams(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs /proc or ps to see processes")
	}
	for name, c := range map[string]struct {
		close func(*acpClient)
		code  int
	}{
		"stdin":  {func(c *acpClient) { c.in.Close() }, 0},
		"stdout": {func(c *acpClient) { c.out.Close() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := testkit.NewProvider(t, register("noisy", noisy), execute("noisy"))
			a := newSandboxed(t, p).acp()
			sid := a.begin()
			a.prompt(sid, "go")
			eventually(t, "running", func() bool {
				_, err := os.Stat(filepath.Join(a.folder, "running"))
				return err == nil
			})
			started := time.Now()
			c.close(a)
			if code := a.s.wait(a.cmd, 20*time.Second); code != c.code {
				t.Errorf("exit code %d\n%s", code, a.s.errs.String())
			}
			t.Logf("gone after %s", time.Since(started).Round(time.Millisecond))
			a.s.checkNothingIsLeft()
			if text := a.s.shown(sid); !strings.Contains(text, "> the turn ended early: interrupted") {
				t.Errorf("the session says:\n%s", text)
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		newSandboxed(t, testkit.NewProvider(t)).acp().done()
	})
}

// noisy prints for long.
const noisy = `await Deno.writeTextFile(__workspace + "/running", "");
for (let i = 0; i < 1000; i++) { console.log("line", i); await new Promise((r) => setTimeout(r, 60)); }`

// Whatever is configured, printed or broken, stdout has messages only; the rest
// is on stderr (case P01).
func TestACP_StdoutIsTheProtocols(t *testing.T) {
	const printer = `console.log('{"jsonrpc":"2.0","id":1,"result":{}}'); console.error("\u2028\r\nfake"); console.log("a\u2028b");
export default () => "\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\u2029";`
	p := testkit.NewProvider(t, register("printer", printer), execute("printer"), testkit.OpenAIText("{\"jsonrpc\":\"2.0\"}\n\u2028\r{"))
	s := newSandboxed(t, p)
	config := filepath.Join(s.home, "config.json")
	raw, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	raw = append(bytes.TrimSuffix(raw, []byte("}")), `,"unknown":{"key":1}}`...)
	if err := os.WriteFile(config, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.ws, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.ws, "tools", "index.json"), []byte("{broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "DEBUG=1", "RUST_LOG=debug", "GODEBUG=http2debug=1")
	c := s.acp("--json") // read checks each line
	sid := c.begin()
	if m := c.answer(c.prompt(sid, "go")); m.Result.StopReason != "end_turn" {
		t.Errorf("%s\n%s", m.raw, s.errs.String())
	}
	c.done()
	for _, want := range []string{"unknown", "index.json"} {
		if !strings.Contains(s.errs.String(), want) {
			t.Errorf("stderr does not tell of %s:\n%s", want, s.errs.String())
		}
	}
}

// gated waits for a file that the client writes when it was told of the call.
const gated = `for (;;) { try { await Deno.stat(__workspace + "/go"); break; } catch { await new Promise((r) => setTimeout(r, 20)); } }
console.log("went"); export default () => "done";`

// The client knows of a call before its tool starts; each call has one last
// update; nothing of a turn follows its answer (case P05).
func TestACP_Order(t *testing.T) {
	p := testkit.NewProvider(t, register("gated", gated), execute("gated"), testkit.OpenAIText("finished"))
	c := newSandboxed(t, p).acp()
	sid := c.begin()
	if len(c.seen) != 2 {
		t.Errorf("before the first prompt came %v", c.seen)
	}
	id := c.prompt(sid, "go")
	c.next("the call", func(m acpMessage) bool { return m.isUpdate("tool_call") && m.Params.Update.Title == "Run gated" })
	if err := os.WriteFile(filepath.Join(c.folder, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.answer(id)
	state := map[string]string{}
	for _, m := range c.seen[2:] {
		u := m.Params.Update
		switch {
		case u.Kind == "tool_call":
			if state[u.CallID] != "" {
				t.Errorf("call %s was told twice", u.CallID)
			}
			state[u.CallID] = u.Status
		case u.Kind == "tool_call_update" && state[u.CallID] != "in_progress":
			t.Errorf("an update for a call that is %q: %s", state[u.CallID], m.raw)
		case u.Kind == "tool_call_update":
			state[u.CallID] = u.Status
		}
	}
	if len(state) != 2 || state["r"] != "completed" || state["x"] != "completed" {
		t.Errorf("the calls ended as %v", state)
	}
	c.done() // which fails if something follows
}

// After a kill the session is replayed: all ids known, the calls finished, the
// one that was cut failed (case P10); then it goes on.
func TestACP_LoadAfterAKill(t *testing.T) {
	p := testkit.NewProvider(t, register("sleeper", sleeper),
		testkit.OpenAI(testkit.Turn{Reasoning: "let me see", Text: "I run it.", Calls: []testkit.Call{{ID: "x", Name: "execute", Args: `{"name":"sleeper"}`}}}),
		testkit.OpenAIText("well"))
	s := newSandboxed(t, p)
	c := s.acp()
	sid := c.begin()
	c.prompt(sid, "go on\u2028now")
	eventually(t, "running", func() bool {
		_, err := os.Stat(filepath.Join(c.folder, "running"))
		return err == nil
	})
	kill(t, c.cmd)

	c = s.acp()
	c.answer(c.request("initialize", map[string]any{"protocolVersion": 1}))
	list := c.answer(c.request("session/list", map[string]any{"cwd": c.folder}))
	if !strings.Contains(list.raw, sid) || !strings.Contains(list.raw, `"title":"go on now"`) {
		t.Errorf("the list: %s", list.raw)
	}
	from := len(c.seen)
	if m := c.answer(c.request("session/load", map[string]any{"sessionId": sid, "cwd": c.folder, "mcpServers": []any{}})); m.Error != nil {
		t.Fatal(m.raw)
	}
	var got []string
	for _, m := range c.seen[from:] {
		u := m.Params.Update
		if m.Params.SessionID != "" && m.Params.SessionID != sid {
			t.Errorf("another session: %s", m.raw)
		}
		got = append(got, strings.TrimSpace(strings.Join([]string{u.Kind, u.CallID, u.Status}, " ")))
	}
	want := []string{"user_message_chunk", "tool_call r in_progress", "tool_call_update r completed", "agent_thought_chunk", "agent_message_chunk",
		"tool_call x in_progress", "tool_call_update x failed", ""}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if m := c.answer(c.prompt(sid, "and?")); m.Result.StopReason != "end_turn" {
		t.Error(m.raw)
	}
	if body := string(p.Requests()[2].Body); !strings.Contains(body, "go on") || !strings.Contains(body, "interrupted: this call did not finish") {
		t.Errorf("the model was sent %s", body)
	}
	if rest, code := c.end(); code != 0 || len(rest) > 0 {
		t.Errorf("exit code %d, then came %v", code, rest)
	}
	if m := c.seen[len(c.seen)-1]; strings.Contains(m.raw, "null") {
		t.Errorf("null in %s", m.raw)
	}
}

// Two sessions run side by side, with histories and cancellations of their own
// (case P06).
func TestACP_TwoSessions(t *testing.T) {
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		if bytes.Contains(r.Body, []byte("forever")) {
			return hanging("endless")
		}
		return testkit.OpenAIText("quick")
	})
	c := newSandboxed(t, p).acp()
	one, two := c.begin(), c.newSession()
	first := c.prompt(one, "forever")
	c.update("agent_message_chunk")
	if m := c.answer(c.prompt(two, "hi")); m.Result.StopReason != "end_turn" {
		t.Error(m.raw)
	}
	if m := c.answer(c.prompt(one, "again")); m.Error == nil || m.Error.Code != -32600 || !strings.Contains(m.Error.Message, "busy") {
		t.Errorf("a second prompt: %s", m.raw)
	}
	c.cancel(two) // where nothing runs
	c.cancel(one)
	if m := c.answer(first); m.Result.StopReason != "cancelled" {
		t.Error(m.raw)
	}
	for _, r := range p.Requests() {
		if bytes.Contains(r.Body, []byte("forever")) && bytes.Contains(r.Body, []byte(`"hi"`)) {
			t.Errorf("the histories are mixed: %s", r.Body)
		}
	}
	c.done()
}

// Cancellations that are sent together with their prompts all find them, and a
// prompt behind one waits for the end of the turn before it (case C03).
func TestACP_CancelNeverMisses(t *testing.T) {
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		if !bytes.Contains(r.Body, []byte("short")) {
			return hanging("endless")
		}
		return testkit.OpenAIText("ok")
	})
	c := newSandboxed(t, p).acp()
	sid := c.begin()
	var cancelled []string
	for range 50 {
		cancelled = append(cancelled, c.prompt(sid, "long"))
		c.cancel(sid)
	}
	last := c.prompt(sid, "short")
	for _, id := range cancelled {
		if m := c.answer(id); m.Result.StopReason != "cancelled" {
			t.Fatal(m.raw)
		}
	}
	if m := c.answer(last); m.Result.StopReason != "end_turn" {
		t.Error(m.raw)
	}
	c.done()
}

// Where nothing can be kept, the agent says so and answers (case D04).
func TestACP_WithoutAHome(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a place where root cannot write")
	}
	p := testkit.NewProvider(t)
	for _, home := range []string{"", "/proc/none"} {
		s := newSandboxed(t, p)
		s.env = append(s.env, "TENDRIL_HOME="+home, "HOME="+home)
		c := s.acp("--workspace", s.ws, "--model", "demo")
		sid := c.begin()
		if m := c.answer(c.prompt(sid, "hi")); m.Result.StopReason != "end_turn" {
			t.Errorf("HOME=%q: %s", home, m.raw)
		}
		c.done()
		if !strings.Contains(s.errs.String(), "! ") {
			t.Errorf("HOME=%q: stderr is silent:\n%s", home, s.errs.String())
		}
	}
}

// Without a key there is a session, and the prompt says what is missing; a
// provider that fails is an error, and no cancellation (case C04).
func TestACP_Errors(t *testing.T) {
	p := testkit.NewProvider(t, testkit.JSON(401, map[string]any{"error": map[string]string{"message": "bad key sk-test"}}), testkit.OpenAIText("ok"))
	s := newSandboxed(t, p)
	c := s.acp("--model", "anthropic/claude-x")
	sid := c.begin()
	m := c.answer(c.prompt(sid, "hi"))
	if m.Error == nil || m.Error.Code != -32603 || m.Error.Data.Kind != "configuration" || !strings.Contains(m.Error.Message, "ANTHROPIC_API_KEY") {
		t.Errorf("no key: %s", m.raw)
	}
	c.done()

	c = s.acp()
	sid = c.begin()
	m = c.answer(c.prompt(sid, "hi"))
	if m.Error == nil || m.Error.Data.Kind != "credentials" || strings.Contains(m.raw, "sk-test") {
		t.Errorf("a refused key: %s", m.raw)
	}
	if m = c.answer(c.prompt(sid, "hi")); m.Result.StopReason != "end_turn" {
		t.Errorf("afterwards: %s", m.raw)
	}
	for name, params := range map[string]any{
		"relative":     map[string]any{"cwd": "project"},
		"missing":      map[string]any{},
		"system":       map[string]any{"cwd": "/usr"},
		"comma":        map[string]any{"cwd": filepath.Join(c.folder, "a,b")},
		"our home":     map[string]any{"cwd": s.home},
		"nonexistent":  map[string]any{"cwd": filepath.Join(c.folder, "none")},
		"a number":     map[string]any{"cwd": 1},
		"a file":       map[string]any{"cwd": filepath.Join(s.home, "..", "file")},
		"not absolute": map[string]any{"cwd": "~/x"},
	} {
		if name == "a file" {
			if err := os.WriteFile(filepath.Join(filepath.Dir(s.home), "file"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			params = map[string]any{"cwd": filepath.Join(filepath.Dir(s.home), "file")}
		}
		if m := c.answer(c.request("session/new", params)); m.Error == nil || m.Error.Code != -32602 || !strings.Contains(m.Error.Message, "params.cwd") {
			t.Errorf("cwd %s: %s", name, m.raw)
		}
	}
	for name, block := range map[string]any{
		"blank": map[string]string{"type": "text", "text": " \n"},
		"image": map[string]string{"type": "image", "data": "aaaa", "mimeType": "image/png"},
		"NUL":   map[string]string{"type": "text", "text": "a\x00b"},
	} {
		if m := c.answer(c.request("session/prompt", map[string]any{"sessionId": sid, "prompt": []any{block}})); m.Error == nil || m.Error.Data.Kind != "prompt" {
			t.Errorf("a prompt that is %s: %s", name, m.raw)
		}
	}
	for _, call := range []struct{ method, params string }{
		{"session/load", `{"sessionId":"none","cwd":"` + c.folder + `"}`}, {"session/set_mode", `{"sessionId":"none","modeId":"ask"}`},
		{"session/prompt", `{"sessionId":"none","prompt":[]}`}, {"session/close", `{"sessionId":"none"}`},
	} {
		if m := c.answer(c.request(call.method, json.RawMessage(call.params))); m.Error == nil || m.Error.Code != -32002 {
			t.Errorf("%s: %s", call.method, m.raw)
		}
	}
	for _, version := range []string{`"1.0.0"`, `-1`, `{}`, `null`} {
		if m := c.answer(c.request("initialize", json.RawMessage(`{"protocolVersion":`+version+`}`))); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("version %s: %s", version, m.raw)
		}
	}
	c.done()
}
