package host

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
)

// replica is a client that knows only what is published.
type replica struct{ items []Item }

func (r *replica) apply(t *transcript, changes []change) {
	for _, c := range changes {
		switch {
		case c.Text != "":
			r.items[c.Index].Text += c.Text
		case c.Index == len(r.items):
			r.items = append(r.items, t.items[c.Index])
		default:
			r.items[c.Index] = t.items[c.Index]
		}
	}
}

func text(s string) *agent.Message {
	return &agent.Message{Blocks: []agent.Block{{Type: agent.BlockText, Text: s}}}
}

// conversationEvents is a turn with everything in it, and one that has no end.
func conversationEvents() []agent.Event {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	events := []agent.Event{
		{Type: agent.TurnStarted, Turn: 1, Model: "demo", Message: text("hello")},
		{Type: agent.ReasoningDelta, Text: "let "}, {Type: agent.ReasoningDelta, Text: "me see"},
		{Type: agent.TextDelta, Text: "I "}, {Type: agent.TextDelta, Text: "look"},
		{Type: agent.AssistantMessage, Message: &agent.Message{Blocks: []agent.Block{
			{Type: agent.BlockReasoning, Text: "let me see"}, {Type: agent.BlockText, Text: "I look"},
		}}},
		{Type: agent.UsageReported, Usage: &agent.Usage{Input: 10, Output: 5}, ContextTokens: 15, ContextWindow: 100},
		{Type: agent.ToolCallStarted, CallID: "1", Tool: agent.RegisterTool, Call: &agent.Call{Input: json.RawMessage(`{"definition":{"name":"words"}}`)}},
		{Type: agent.ToolCallProgress, CallID: "1", Progress: &agent.Progress{Step: "types", State: "running"}},
		{Type: agent.ToolCallProgress, CallID: "1", Progress: &agent.Progress{Step: "types", State: "passed", MS: 7}},
		{Type: agent.ToolCallFinished, CallID: "1", Tool: agent.RegisterTool, Result: &agent.Result{Status: agent.Completed, Text: "kept"}, DurationMS: 9},
		{Type: agent.ToolCallStarted, CallID: "2", Tool: agent.ExecuteTool, Call: &agent.Call{Input: json.RawMessage(`{"name":"words"}`)}},
		{Type: agent.ToolCallProgress, CallID: "2", Progress: &agent.Progress{Stream: "stdout", Line: "one"}},
		{Type: agent.ToolCallFinished, CallID: "2", Tool: agent.ExecuteTool, Result: &agent.Result{Status: agent.Failed, Text: "no"}},
		{Type: agent.Retry, Retry: &agent.RetryInfo{Message: "busy", WaitMS: 500}},
		{Type: agent.TextDelta, Text: "no"}, {Type: agent.AssistantMessage, Message: text("nothing")},
		{Type: agent.TurnFinished, Turn: 1, Stop: agent.StopEndTurn},
		{Type: agent.TurnStarted, Turn: 2, Message: text("again")},
		{Type: agent.ToolCallStarted, CallID: "3", Tool: agent.ExecuteTool, Call: &agent.Call{Input: json.RawMessage(`"not an object"`)}},
		{Type: agent.TurnStarted, Turn: 3, Message: text("and again")},
	}
	for i := range events {
		events[i].Seq, events[i].Time = int64(i+1), at
	}
	return events
}

func TestTranscript_TellsAllThatChanges(t *testing.T) {
	events := conversationEvents()
	live, r := newTranscript(nil), &replica{items: []Item{}}
	for _, e := range events {
		r.apply(live, live.add(e))
		r.apply(live, live.add(e)) // once more: it is in already
	}
	if !reflect.DeepEqual(r.items, live.items) {
		t.Errorf("a client has\n%s\nnot\n%s", shown(r.items), shown(live.items))
	}
	var types []string
	for _, item := range live.items {
		types = append(types, item.Type)
	}
	want := []string{"user", "thought", "agent", "tool", "tool", "notice", "agent", "turn", "user", "tool", "turn", "user"}
	if !reflect.DeepEqual(types, want) {
		t.Errorf("%v", types)
	}
	built := live.items[3].Tool
	if built.Name != "words" || built.Status != "done" || len(built.Steps) != 1 || built.Steps[0] != (Step{Step: "types", State: "passed", DurationMS: 7}) {
		t.Errorf("%+v", built)
	}
	if live.items[6].Text != "nothing" {
		t.Errorf("the whole reply does not stand in the place of its pieces: %+v", live.items[6])
	}
	if lost := live.items[9].Tool; lost.Status != "failed" || string(lost.Input) != `"not an object"` || live.items[10].Turn.Stop != "interrupted" {
		t.Errorf("%+v %+v", lost, live.items[10].Turn)
	}
	if _, err := json.Marshal(live.items); err != nil {
		t.Error(err)
	}
}

// TestTranscript_ReadAgainIsTheSame: what was shown live is what is read later,
// when pieces of whole replies are not kept.
func TestTranscript_ReadAgainIsTheSame(t *testing.T) {
	var kept []agent.Event
	live := newTranscript(nil)
	for _, e := range conversationEvents() {
		live.add(e)
		if e.Type != agent.TextDelta && e.Type != agent.ReasoningDelta && e.Type != agent.ToolCallProgress {
			kept = append(kept, e)
		}
	}
	for i := range live.items { // progress is not part of what is kept here
		if call := live.items[i].Tool; call != nil {
			call.Steps, call.Lines = nil, nil
		}
	}
	if again := newTranscript(kept); !reflect.DeepEqual(again.items, live.items) {
		t.Errorf("read again:\n%s\nlive:\n%s", shown(again.items), shown(live.items))
	}
}

// FuzzTranscript: whatever an agent tells, a client that follows has the same.
func FuzzTranscript(f *testing.F) {
	seed, err := json.Marshal(conversationEvents())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`[{"type":"tool_call_finished","call_id":"x"},{"type":"assistant_message"},{"type":"text_delta","text":""}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var events []agent.Event
		if json.Unmarshal(data, &events) != nil {
			return
		}
		live, r := newTranscript(nil), &replica{items: []Item{}}
		for _, e := range events {
			r.apply(live, live.add(e))
		}
		if !reflect.DeepEqual(r.items, live.items) {
			t.Errorf("a client has\n%s\nnot\n%s", shown(r.items), shown(live.items))
		}
		if _, err := json.Marshal(live.items); err != nil {
			t.Error(err)
		}
	})
}

func shown(items []Item) string {
	text, _ := json.MarshalIndent(items, "", " ")
	return string(text)
}
