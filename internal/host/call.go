package host

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
)

func (t *transcript) callStarted(e agent.Event) []change {
	call := &Tool{ID: e.CallID, Tool: e.Tool, Status: "running", Note: e.Note, Started: e.Time}
	if e.Note == agent.NotRun {
		call.Status = "pending"
	}
	if e.Call != nil {
		call.Input = e.Call.Input
		var input struct {
			Name       string `json:"name"`
			Definition struct {
				Name string `json:"name"`
			} `json:"definition"`
		}
		_ = json.Unmarshal(call.Input, &input) // what is wrong with it, the result will say
		if call.Name = input.Name; e.Tool == agent.RegisterTool {
			call.Name = input.Definition.Name
		}
	}
	t.calls[e.CallID] = len(t.items)
	return t.push(Item{Type: "tool", Tool: call, Time: e.Time})
}

// changed returns a copy of a call, which takes the place of the one that
// clients may be reading.
func (t *transcript) changed(id string) (call *Tool, changes []change) {
	at, ok := t.calls[id]
	if !ok {
		return nil, nil
	}
	copied := *t.items[at].Tool
	t.items[at].Tool = &copied
	return &copied, []change{{Index: at}}
}

func (t *transcript) callProgress(e agent.Event) []change {
	call, changes := t.changed(e.CallID)
	if call == nil || e.Progress == nil {
		return nil
	}
	p := e.Progress
	if p.Stream != "" {
		call.Lines = append(slices.Clone(call.Lines[max(0, len(call.Lines)-maxLines+1):]), p.Line)
		return changes
	}
	step := Step{Step: p.Step, State: p.State, Note: p.Note, DurationMS: p.MS}
	call.Steps = slices.Clone(call.Steps)
	if i := slices.IndexFunc(call.Steps, func(s Step) bool { return s.Step == p.Step && s.State == "running" }); i >= 0 {
		call.Steps[i] = step
	} else {
		call.Steps = append(call.Steps, step)
	}
	return changes
}

func (t *transcript) callFinished(e agent.Event) []change {
	call, changes := t.changed(e.CallID)
	if call == nil || e.Result == nil {
		return nil
	}
	delete(t.calls, e.CallID)
	call.Status, call.Output, call.Detail, call.DurationMS = "done", e.Result.Text, e.Result.Detail, e.DurationMS
	switch {
	case e.Result.Text == agent.SkippedResult:
		call.Status = "skipped"
	case e.Result.Status == agent.Failed:
		call.Status = "failed"
		var refusal capability.Refusal
		_ = json.Unmarshal(e.Result.Detail, &refusal) // an execution that failed has no such field
		call.Denied = refusal.Denied
	}
	var x agent.Execution
	if e.Tool == agent.ExecuteTool && json.Unmarshal(e.Result.Detail, &x) == nil {
		call.Outcome, call.File, call.Files = string(x.Outcome), x.File, resultFiles(x.Files)
	}
	return changes
}

func retryText(r *agent.RetryInfo) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s; trying again in %.1f s", r.Message, float64(r.WaitMS)/1000)
}

func shortenedText(s *agent.Shortened) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%d older results are shown to the model in short from now on", len(s.Calls))
}
