//go:build linux

package cli_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// TestHost_FirstToReuse: a capability is built, and the next request runs it.
func TestHost_FirstToReuse(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t, register("quick", "console.log('hi'); export default () => 42;"), execute("quick"), testkit.OpenAIText("it is 42"),
		execute("quick"), testkit.OpenAIText("still 42"))
	c := newSandboxed(t, p).host()
	c.ready()
	id := c.newSession()
	c.prompt(id, "what is it?")
	if end := c.turn(id); end.Stop != "end_turn" || end.ModelCalls != 3 {
		t.Errorf("%+v", end)
	}
	c.checkSame(id)
	c.prompt(id, "and now?")
	c.says(id, "still 42")
	c.turn(id)
	c.checkSame(id)
	c.mu.Lock()
	tools := []host.Tool{}
	for _, item := range c.items[id] {
		if item.Tool != nil {
			tools = append(tools, *item.Tool)
		}
	}
	c.mu.Unlock()
	if len(tools) != 3 || tools[0].Name != "quick" || len(tools[0].Steps) == 0 || tools[0].Status != "done" || tools[2].Output != "42" || len(tools[2].Detail) == 0 {
		t.Errorf("%+v", tools)
	}
	var list host.SessionList
	c.must("GET", "/api/sessions?query=what", nil, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Title != "what is it?" || list.Sessions[0].Client != "app" || list.Sessions[0].Turns != 2 {
		t.Errorf("%+v", list)
	}
	c.done()
}

// TestHost_TwoAtOnce: two sessions run side by side, a second prompt of one is
// refused, and a cancel ends its own turn only (case P06).
func TestHost_TwoAtOnce(t *testing.T) {
	t.Parallel()
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		if strings.Contains(string(r.Body), "wait") {
			return hanging("waiting")
		}
		return testkit.OpenAIText("done")
	})
	c := newSandboxed(t, p).host()
	c.ready()
	one, two := c.newSession(), c.newSession()
	c.prompt(one, "wait")
	c.prompt(two, "wait too")
	c.says(one, "waiting")
	c.says(two, "waiting")
	if status, text := c.call("POST", "/api/sessions/"+one+"/prompt", map[string]string{"text": "more"}, nil); status != http.StatusConflict || !strings.Contains(text, `"busy"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := c.call("DELETE", "/api/sessions/"+one, nil, nil); status != http.StatusConflict {
		t.Errorf("a session in which a turn runs was deleted: %d", status)
	}
	c.must("POST", "/api/sessions/"+one+"/cancel", map[string]any{}, nil)
	if end := c.turn(one); end.Stop != "cancelled" {
		t.Errorf("%+v", end)
	}
	c.mu.Lock()
	if !c.sessions[two].Running {
		t.Error("the other turn ended, too")
	}
	c.mu.Unlock()
	c.must("POST", "/api/sessions/"+two+"/cancel", map[string]any{}, nil)
	c.turn(two)
	c.prompt(one, "go on") // its history has the word; the reply is what counts
	c.must("POST", "/api/sessions/"+one+"/cancel", map[string]any{}, nil)
	c.turn(one)
	c.checkSame(one)
	c.checkSame(two)
	c.must("DELETE", "/api/sessions/"+one, nil, nil)
	if status, _ := c.call("GET", "/api/sessions/"+one, nil, nil); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	c.done()
}

// TestHost_AsksThePerson: a question is put once, answered once, and withdrawn
// with its turn.
func TestHost_AsksThePerson(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t, networked("a", "one", "example.com"), testkit.OpenAIText("denied"), networked("b", "two", "example.org"), testkit.OpenAIText("allowed"),
		execute("two"), testkit.OpenAIText("not run"), networked("c", "three", "example.net"))
	c := newSandboxed(t, p).host()
	c.ready()
	id := c.newSession()
	c.must("POST", "/api/sessions/"+id+"/mode", map[string]string{"mode": "ask"}, nil)
	c.prompt(id, "one")
	q := c.asked(id)
	if q.Capability != "one" || len(q.Hosts) != 1 || q.Hosts[0] != "example.com" || len(q.Options) != 3 || q.CallID != "a" {
		t.Errorf("%+v", q)
	}
	if workspace := []string{"the workspace"}; !slices.Equal(q.Net, q.Hosts) || !slices.Equal(q.Read, workspace) || !slices.Equal(q.Write, workspace) || q.Secrets == nil || len(q.Hash) != 64 {
		t.Errorf("it does not say what else is allowed: %+v", q)
	}
	if status, text := c.reply(id, q, "everything"); status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", status, text)
	}
	if status, text := c.reply(id, q, "deny"); status != http.StatusNoContent {
		t.Errorf("%d %s", status, text)
	}
	if status, text := c.reply(id, q, "always"); status != http.StatusConflict || !strings.Contains(text, `"gone"`) {
		t.Errorf("%d %s", status, text)
	}
	c.says(id, "denied")
	c.turn(id)
	c.wasDenied(id, "example.com")
	c.prompt(id, "two")
	q = c.asked(id)
	if status, text := c.reply(id, q, "once"); status != http.StatusNoContent {
		t.Errorf("%d %s", status, text)
	}
	c.says(id, "allowed")
	c.turn(id)
	var built host.CapabilityInfo
	if c.must("GET", "/api/capabilities/two", nil, &built); built.Hash != q.Hash {
		t.Errorf("asked about %s, built %s", q.Hash, built.Hash)
	}
	c.must("POST", "/api/agent/restart", map[string]any{}, nil) // until which it was allowed
	c.until("another agent", func() bool { return c.state.Agent.Restarts == 1 && c.state.Agent.Status == "ready" })
	c.prompt(id, "run it")
	if q = c.asked(id); q.Hash != built.Hash {
		t.Errorf("asked about %s, built %s", q.Hash, built.Hash)
	}
	c.reply(id, q, "deny")
	c.says(id, "not run")
	c.turn(id)
	c.wasDenied(id, "example.org")
	c.prompt(id, "three")
	q = c.asked(id)
	c.must("POST", "/api/sessions/"+id+"/cancel", map[string]any{}, nil)
	if end := c.turn(id); end.Stop != "cancelled" {
		t.Errorf("%+v", end)
	}
	if status, text := c.reply(id, q, "always"); status != http.StatusConflict {
		t.Errorf("%d %s", status, text)
	}
	c.checkSame(id)
	c.done()
}

// TestHost_ModeLasts: that a person wants to be asked holds with the session, for
// the next host as for an editor.
func TestHost_ModeLasts(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t, testkit.OpenAIText("hello"), networked("a", "one", "example.com"), testkit.OpenAIText("denied"))
	s := newSandboxed(t, p)
	c := s.host()
	c.ready()
	id := c.newSession()
	c.must("POST", "/api/sessions/"+id+"/mode", map[string]string{"mode": "ask"}, nil)
	c.prompt(id, "hi")
	c.turn(id)
	c.done()

	editor := s.acp()
	if m := editor.answer(editor.request("session/load", map[string]any{"sessionId": id, "cwd": s.ws, "mcpServers": []any{}})); !strings.Contains(m.raw, `"currentModeId":"ask"`) {
		t.Errorf("%s", m.raw)
	}
	editor.done()

	c = s.host()
	c.ready()
	var kept host.Conversation
	if c.must("GET", "/api/sessions/"+id, nil, &kept); kept.State.Mode != "ask" {
		t.Errorf("%+v", kept.State)
	}
	c.mu.Lock()
	c.items[id] = kept.Items
	c.mu.Unlock()
	c.prompt(id, "go")
	if status, text := c.reply(id, c.asked(id), "deny"); status != http.StatusNoContent {
		t.Errorf("%d %s", status, text)
	}
	c.says(id, "denied")
	c.turn(id)
	c.done()
}

// TestHost_AgentDies in the middle of a turn: what was shown stays, the turn
// reads interrupted, the next one works, and nothing runs again by itself.
func TestHost_AgentDies(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t, hanging("half of it"), testkit.OpenAIText("all of it"))
	s := newSandboxed(t, p)
	c := s.host()
	c.ready()
	id := c.newSession()
	c.prompt(id, "go")
	c.says(id, "half of it")
	c.killAgent()
	if end := c.turn(id); end.Stop != "interrupted" {
		t.Errorf("%+v", end)
	}
	c.until("it is started again", func() bool { return c.state.Agent.Status == "ready" && c.state.Agent.Restarts == 1 })
	c.checkSame(id)
	c.prompt(id, "go")
	c.says(id, "all of it")
	if end := c.turn(id); end.Stop != "end_turn" {
		t.Errorf("%+v", end)
	}
	c.done()

	again := s.host() // and so it is read by the next one
	var kept host.Conversation
	again.must("GET", "/api/sessions/"+id, nil, &kept)
	var stops []string
	for _, item := range kept.Items {
		if item.Turn != nil {
			stops = append(stops, item.Turn.Stop)
		}
	}
	if len(stops) != 2 || stops[0] != "interrupted" || stops[1] != "end_turn" || kept.Items[1].Text != "half of it" {
		t.Errorf("%v %+v", stops, kept.Items)
	}
	again.done()
}

// TestHost_Ends in the middle of a turn, by a signal or by force: the turn reads
// interrupted, and not as if the person had cancelled it.
func TestHost_Ends(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t, hanging("half of it"), hanging("half of it"))
	s := newSandboxed(t, p)
	var ids []string
	for _, end := range []func(*hostClient){(*hostClient).done, func(c *hostClient) {
		c.stop()
		kill(t, c.cmd)
		s.checkNothingIsLeft()
	}} {
		c := s.host()
		c.ready()
		id := c.newSession()
		c.prompt(id, "go")
		c.says(id, "half of it")
		end(c)
		ids = append(ids, id)
	}
	c := s.host()
	for _, id := range ids {
		var kept host.Conversation
		c.must("GET", "/api/sessions/"+id, nil, &kept)
		if n := len(kept.Items); n != 3 || kept.Items[1].Text != "half of it" || kept.Items[2].Turn.Stop != "interrupted" {
			t.Errorf("%+v", kept.Items)
		}
	}
	c.done()
}

// TestHost_ThreeCrashes end the attempts; Restart starts afresh.
func TestHost_ThreeCrashes(t *testing.T) {
	t.Parallel()
	c := newSandboxed(t, testkit.NewProvider(t, testkit.OpenAIText("alive"))).host()
	for range 3 {
		c.ready()
		c.killAgent()
		c.until("that is seen", func() bool { return c.state.Agent.Status != "ready" })
	}
	c.until("it gives up", func() bool { return c.state.Agent.Status == "failed" })
	id := c.newSession()
	if status, text := c.call("POST", "/api/sessions/"+id+"/prompt", map[string]string{"text": "hello"}, nil); status != http.StatusServiceUnavailable || !strings.Contains(text, "restart it") {
		t.Errorf("%d %s", status, text)
	}
	c.must("POST", "/api/agent/restart", map[string]any{}, nil)
	c.ready()
	c.prompt(id, "hello")
	c.says(id, "alive")
	c.turn(id)
	c.done()
}

// TestHost_SetupFailure: a prompt that cannot begin is refused with what to do,
// and is not part of the conversation.
func TestHost_SetupFailure(t *testing.T) {
	t.Parallel()
	s := newSandboxed(t, testkit.NewProvider(t))
	s.env = append(s.env, "OPENAI_API_KEY=")
	c := s.host()
	c.ready()
	id := c.newSession()
	status, text := c.call("POST", "/api/sessions/"+id+"/prompt", map[string]string{"text": "hello"}, nil)
	if status != http.StatusBadGateway || !strings.Contains(text, "OPENAI_API_KEY") {
		t.Errorf("%d %s", status, text)
	}
	for _, empty := range []string{"", " \n"} {
		if status, text := c.call("POST", "/api/sessions/"+id+"/prompt", map[string]string{"text": empty}, nil); status != http.StatusUnprocessableEntity {
			t.Errorf("%d %s", status, text)
		}
	}
	var kept host.Conversation
	c.must("GET", "/api/sessions/"+id, nil, &kept)
	if len(kept.Items) != 0 || kept.State.Running {
		t.Errorf("%+v", kept)
	}
	c.done()
}

// TestHost_SecondStart finds the first one.
func TestHost_SecondStart(t *testing.T) {
	t.Parallel()
	s := newSandboxed(t, testkit.NewProvider(t))
	c := s.host()
	other := &sandboxed{t: t, home: s.home, ws: s.ws, env: s.env}
	cmd := other.start("--no-open")
	if code := other.wait(cmd, 20*time.Second); code != 0 || !strings.HasPrefix(other.out.String(), c.address+"/open?code=") || !strings.Contains(other.errs.String(), "runs already") {
		t.Errorf("%d %s %s", code, other.out.String(), other.errs.String())
	}
	c.done()
}

// TestHost_CapabilitiesCannotReachIt, whatever network they were granted.
func TestHost_CapabilitiesCannotReachIt(t *testing.T) {
	t.Parallel()
	var c *hostClient
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		switch strings.Count(string(r.Body), `"role":"tool"`) {
		case 0:
			return networkedCode("a", "curious", "export default async () => await (await fetch('"+c.address+"/api/state')).text();", "*")
		case 1:
			return execute("curious")
		}
		return testkit.OpenAIText("over")
	})
	c = newSandboxed(t, p).host()
	c.ready()
	id := c.newSession()
	c.prompt(id, "look around")
	c.until("a question", func() bool { return len(c.sessions[id].Permissions) == 1 })
	c.must("POST", "/api/sessions/"+id+"/permissions/"+c.sessions[id].Permissions[0].ID, map[string]string{"option": "always"}, nil)
	c.turn(id)
	c.mu.Lock()
	var ran *host.Tool
	for _, item := range c.items[id] {
		if item.Tool != nil && item.Tool.Tool == "execute" {
			ran = item.Tool
		}
	}
	c.mu.Unlock()
	if ran == nil || !strings.Contains(ran.Output, "127.0.0.1") || strings.Contains(ran.Output, "signed in") {
		t.Errorf("%+v", ran)
	}
	c.done()
}
