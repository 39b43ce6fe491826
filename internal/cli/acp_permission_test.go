package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// networked is a call that registers a capability which wants hosts.
func networked(id, name string, hosts ...string) testkit.Reply {
	return networkedCode(id, name, "export default () => 1;", hosts...)
}

func networkedCode(id, name, code string, hosts ...string) testkit.Reply {
	args, _ := json.Marshal(map[string]any{
		"definition": map[string]any{
			"name": name, "capability": "Fetches a page.", "triggers": []string{"test asks", "test asks again"}, "suppression": []string{},
			"permissions": map[string]any{"net": hosts},
		},
		"code": code,
	})
	return testkit.OpenAICalls(testkit.Call{ID: id, Name: "registerCapability", Args: string(args)})
}

// question waits for a question and returns its id.
func (c *acpClient) question() acpMessage {
	c.t.Helper()
	return c.next("a question", func(m acpMessage) bool { return m.Method == "session/request_permission" })
}

func (c *acpClient) reply(question acpMessage, result string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,` + result + `}`)
}

func selected(option string) string {
	return fmt.Sprintf(`"result":{"outcome":{"outcome":"selected","optionId":%q}}`, option)
}

// A person is asked in the session whose turn needs it, and the answer counts.
func TestACP_AsksForPermission(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status string // of the call
		stop   string
	}{
		"once":           {selected("once"), "completed", "end_turn"},
		"always":         {selected("always"), "completed", "end_turn"},
		"deny":           {selected("deny"), "failed", "end_turn"},
		"unknown":        {selected("all"), "failed", "end_turn"},
		"cannot be":      {`"error":{"code":-32601,"message":"method not found"}`, "failed", "end_turn"},
		"makes no sense": {`"result":{"outcome":{"outcome":"later"}}`, "failed", "end_turn"},
		"cancelled":      {`"result":{"outcome":{"outcome":"cancelled"}}`, "failed", "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			p := testkit.NewProvider(t, networked("a", "fetcher", "example.com"), testkit.OpenAIText("ok"))
			a := newSandboxed(t, p).acp()
			sid := a.begin()
			a.answer(a.request("session/set_mode", map[string]string{"sessionId": sid, "modeId": "ask"}))
			id := a.prompt(sid, "go")
			q := a.question()
			if q.Params.SessionID != sid || !strings.Contains(q.raw, `"toolCallId":"a"`) || !strings.Contains(q.raw, "May fetcher reach example.com?") {
				t.Errorf("the question: %s", q.raw)
			}
			a.reply(q, c.answer)
			m := a.next("the end of the call", func(m acpMessage) bool {
				return m.isUpdate("tool_call_update") && m.Params.Update.Status != "in_progress"
			})
			if m.Params.Update.Status != c.status {
				t.Errorf("the call: %s", m.raw)
			}
			if m := a.answer(id); m.Result.StopReason != c.stop {
				t.Errorf("the turn: %s", m.raw)
			}
			a.done()
		})
	}
}

// In mode policy a declared public host is not asked about, "*" always is; an
// answer that comes after a cancellation starts nothing.
func TestACP_AnswerAfterCancel(t *testing.T) {
	p := testkit.NewProvider(t, networked("a", "one", "example.com"), networked("b", "two", "*"), networked("c", "two", "*"), testkit.OpenAIText("ok"))
	a := newSandboxed(t, p).acp()
	sid := a.begin()
	id := a.prompt(sid, "go")
	q := a.question()
	if !strings.Contains(q.raw, `"toolCallId":"b"`) || !strings.Contains(q.raw, "any public host") {
		t.Errorf("the question: %s", q.raw)
	}
	a.cancel(sid)
	if m := a.answer(id); m.Result.StopReason != "cancelled" {
		t.Error(m.raw)
	}
	a.reply(q, selected("always"))
	id = a.prompt(sid, "again")
	second := a.question() // so the late answer was not taken for one
	if string(second.ID) == string(q.ID) || !strings.Contains(second.raw, `"toolCallId":"c"`) {
		t.Errorf("the second question: %s", second.raw)
	}
	a.reply(second, selected("deny"))
	if m := a.answer(id); m.Result.StopReason != "end_turn" {
		t.Error(m.raw)
	}
	a.done()
}
