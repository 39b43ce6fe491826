package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/agent"
)

// TestRenderer_TellsAWarningOnce: the gate's step shows it, so its result need not.
func TestRenderer_TellsAWarningOnce(t *testing.T) {
	var shown strings.Builder
	r := newRenderer(io.Discard, newStatusLine(&shown, false), style{})
	call := agent.Call{ID: "a", Name: agent.RegisterTool, Input: []byte(`{"definition":{"name":"x"}}`)}
	for _, e := range []agent.Event{
		{Type: agent.ToolCallStarted, Call: &call, CallID: "a", Tool: call.Name, Note: "what only a program wants to know"},
		{Type: agent.ToolCallProgress, CallID: "a", Tool: call.Name, Progress: &agent.Progress{Step: "shape", State: "warned", Note: "1 trigger; 2 to 5 work best"}},
		{Type: agent.ToolCallFinished, CallID: "a", Tool: call.Name, Result: &agent.Result{
			Status: agent.Completed, Detail: []byte(`{"name":"x","version":"1.0.0","warnings":["shape: 1 trigger; 2 to 5 work best","x was something else"]}`),
		}},
	} {
		if err := r.event(e); err != nil {
			t.Fatal(err)
		}
	}
	if text := shown.String(); strings.Count(text, "1 trigger") != 1 || !strings.Contains(text, "x was something else") || strings.Contains(text, "a program") {
		t.Errorf("shown:\n%s", text)
	}
}
