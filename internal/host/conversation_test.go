package host

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
)

// TestLines_AreGathered: a capability that prints much does not make events of as
// many whole items, and its last line is told.
func TestLines_AreGathered(t *testing.T) {
	t.Parallel()
	const lines = 10_000
	r := serve(t, t.TempDir(), nil)
	c := &conversation{id: "s", transcript: newTranscript(nil), running: true, accepted: make(chan struct{})}
	r.Host.mu.Lock()
	r.conversations["s"] = c
	r.Host.mu.Unlock()
	take := func(e agent.Event) {
		t.Helper()
		e.Session = "s"
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.took(data); err != nil {
			t.Fatal(err)
		}
	}
	take(agent.Event{Type: agent.TurnStarted, Seq: 1})
	take(agent.Event{Type: agent.ToolCallStarted, Seq: 2, CallID: "1", Tool: agent.ExecuteTool})
	before := r.hub.position()
	for i := range lines {
		take(agent.Event{Type: agent.ToolCallProgress, CallID: "1", Progress: &agent.Progress{Stream: "stdout", Line: fmt.Sprint(i)}})
	}
	for deadline := time.Now().Add(time.Minute); !r.toldLast(before, fmt.Sprint(lines-1)); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the last line was never told")
		}
	}
	if told := r.hub.position() - before; told > lines/10 {
		t.Errorf("%d events for %d lines", told, lines)
	}
}

// toldLast reports whether the newest event is an item whose last line is line.
func (r *running) toldLast(before uint64, line string) bool {
	events, _, _ := r.hub.after(before)
	var e itemEvent
	if len(events) == 0 || json.Unmarshal(events[len(events)-1].data, &e) != nil || e.Item.Tool == nil || len(e.Item.Tool.Lines) == 0 {
		return false
	}
	return e.Item.Tool.Lines[len(e.Item.Tool.Lines)-1] == line
}
