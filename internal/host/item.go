package host

import (
	"encoding/json"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
)

// Item is one thing in a conversation. Which fields are set follows from Type.
type Item struct {
	Type string    `json:"type" enum:"user,agent,thought,tool,notice,turn"`
	Text string    `json:"text,omitempty" doc:"Of user, agent, thought, notice"`
	Time time.Time `json:"time,omitzero" doc:"When it began"`
	Tool *Tool     `json:"tool,omitempty"`
	Turn *Turn     `json:"turn,omitempty" doc:"The end of a turn; one that runs has none yet"`
}

// Tool is a tool call.
type Tool struct {
	ID         string          `json:"id"`
	Tool       string          `json:"tool" doc:"listCapabilities, registerCapability, execute, or what the model made up"`
	Name       string          `json:"name,omitempty" doc:"Of the capability"`
	Status     string          `json:"status" enum:"pending,running,waiting,done,failed,skipped"`
	Input      json.RawMessage `json:"input,omitempty" doc:"As the model sent it"`
	Note       string          `json:"note,omitempty" doc:"What stands out about it"`
	Steps      []Step          `json:"steps,omitempty" doc:"Of the gate"`
	Lines      []string        `json:"lines,omitempty" doc:"The last lines of live output"`
	Output     string          `json:"output,omitempty" doc:"What the model reads"`
	Outcome    string          `json:"outcome,omitempty" doc:"How a run ended: ok, failed, timeout, output_limit, memory_limit, or why else"`
	File       string          `json:"file,omitempty" doc:"Where a result is kept that is too long for the model, relative to the workspace"`
	Files      []ResultFile    `json:"files,omitempty" doc:"What a run wrote, and pictures that it names"`
	Denied     []string        `json:"denied,omitempty" doc:"Hosts that it failed for, because they were not allowed when the person was asked; * is any public host"`
	Detail     json.RawMessage `json:"detail,omitempty" doc:"The result as a listing, an admission, an execution or a refusal"`
	Started    time.Time       `json:"started,omitzero"`
	DurationMS int64           `json:"durationMs,omitempty"`
}

// ResultFile is a file of the workspace that a run wrote, or a picture that it names.
type ResultFile struct {
	Path      string `json:"path" doc:"Relative to the workspace, with slashes"`
	MediaType string `json:"mediaType"`
	Bytes     int64  `json:"bytes"`
}

func resultFiles(files []agent.File) []ResultFile {
	list := make([]ResultFile, 0, len(files))
	for _, f := range files {
		list = append(list, ResultFile{f.Path, f.MediaType, f.Bytes})
	}
	return list
}

// Step is a step of the gate.
type Step struct {
	Step       string `json:"step"`
	State      string `json:"state" enum:"running,passed,warned,failed,skipped"`
	Note       string `json:"note,omitempty"`
	DurationMS int64  `json:"durationMs,omitempty"`
}

// Turn is how a turn ended.
type Turn struct {
	Number      int      `json:"number"`
	Stop        string   `json:"stop" doc:"end_turn, cancelled, interrupted, max_turns, max_tokens, timeout, budget, loop, refusal or error"`
	Budget      string   `json:"budget,omitempty" doc:"Which one: turn, session or day"`
	Error       *Failure `json:"error,omitempty"`
	Usage       *Usage   `json:"usage,omitempty"`
	CostPartial bool     `json:"costPartial,omitempty" doc:"The cost is the least that it can be"`
	DurationMS  int64    `json:"durationMs,omitempty"`
	ModelCalls  int      `json:"modelCalls,omitempty"`
}

// Failure is an error for a person.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Usage is in tokens, and USD where the price is known.
type Usage struct {
	Input         int64    `json:"input"`
	Output        int64    `json:"output"`
	CacheRead     int64    `json:"cacheRead"`
	CacheWrite    int64    `json:"cacheWrite"`
	CostUSD       *float64 `json:"costUSD,omitempty"`
	ContextTokens int64    `json:"contextTokens,omitempty"`
	ContextWindow int64    `json:"contextWindow,omitempty" doc:"Left out when it is not known"`
}

// change is what an event does to a conversation: an item that is new or
// replaced, or, with Text, text that its last item goes on with.
type change struct {
	Index int
	Text  string
}

// transcript is a conversation as items. It is not safe for concurrent use.
type transcript struct {
	items []Item
	open  bool  // a turn runs
	seq   int64 // of the last event
	turn  int
	model string // of the last turn
	usage Usage  // of the session
	reply int    // first item of the reply that streams; -1 when none does
	calls map[string]int
}

func newTranscript(events []agent.Event) *transcript {
	t := &transcript{items: []Item{}, reply: -1, calls: map[string]int{}}
	for _, e := range events {
		t.add(e)
	}
	return t
}

// maxLines bounds what is kept of a call's live output.
const maxLines = 200

// add takes in the next event and says what it changed.
func (t *transcript) add(e agent.Event) []change {
	if e.Seq > 0 && e.Seq <= t.seq {
		return nil // it is in already
	}
	t.seq = max(t.seq, e.Seq)
	switch e.Type {
	case agent.TurnStarted:
		return t.started(e)
	case agent.TextDelta:
		return t.delta("agent", e)
	case agent.ReasoningDelta:
		return t.delta("thought", e)
	case agent.AssistantMessage:
		return t.message(e)
	case agent.UsageReported:
		t.used(e)
	case agent.ToolCallStarted:
		return t.callStarted(e)
	case agent.ToolCallProgress:
		return t.callProgress(e)
	case agent.ToolCallFinished:
		return t.callFinished(e)
	case agent.Retry:
		return t.notice(e, retryText(e.Retry))
	case agent.ContextShortened:
		return t.notice(e, shortenedText(e.Shortened))
	case agent.TurnFinished:
		return t.finished(e)
	}
	return nil
}

func (t *transcript) push(items ...Item) (changes []change) {
	for _, item := range items {
		changes = append(changes, change{Index: len(t.items)})
		t.items = append(t.items, item)
	}
	return changes
}

func (t *transcript) notice(e agent.Event, text string) []change {
	return t.push(Item{Type: "notice", Text: text, Time: e.Time})
}

func (t *transcript) started(e agent.Event) []change {
	changes := t.end(e.Time, &Turn{Number: t.turn, Stop: string(agent.StopInterrupted)}) // of a turn whose end is missing
	t.open, t.turn, t.model, t.reply = true, e.Turn, e.Model, -1
	text := ""
	if e.Message != nil {
		for _, b := range e.Message.Blocks {
			if b.Type == agent.BlockText {
				text += b.Text
			}
		}
	}
	changes = append(changes, t.push(Item{Type: "user", Text: text, Time: e.Time})...)
	if e.Note != "" {
		changes = append(changes, t.notice(e, e.Note)...)
	}
	return changes
}

// delta goes on with the last item, or begins one.
func (t *transcript) delta(kind string, e agent.Event) []change {
	last := len(t.items) - 1
	if t.reply >= 0 && last >= t.reply && t.items[last].Type == kind {
		t.items[last].Text += e.Text
		return []change{{Index: last, Text: e.Text}}
	}
	if t.reply < 0 {
		t.reply = len(t.items)
	}
	return t.push(Item{Type: kind, Text: e.Text, Time: e.Time})
}

// message puts a whole reply in the place of its pieces. It changes those that
// differ only.
func (t *transcript) message(e agent.Event) (changes []change) {
	at := t.reply
	if at < 0 {
		at = len(t.items)
	}
	t.reply = -1
	if e.Message == nil {
		return nil
	}
	for _, b := range e.Message.Blocks {
		kind := map[agent.BlockType]string{agent.BlockText: "agent", agent.BlockReasoning: "thought"}[b.Type]
		if kind == "" || b.Text == "" || b.Redacted {
			continue
		}
		switch {
		case at == len(t.items):
			changes = append(changes, t.push(Item{Type: kind, Text: b.Text, Time: e.Time})...)
		case t.items[at].Type != kind || t.items[at].Text != b.Text:
			t.items[at].Type, t.items[at].Text = kind, b.Text
			changes = append(changes, change{Index: at})
		}
		at++
	}
	return changes
}

func (t *transcript) used(e agent.Event) {
	if u := e.Usage; u != nil {
		t.usage.Input += u.Input
		t.usage.Output += u.Output
		t.usage.CacheRead += u.CacheRead
		t.usage.CacheWrite += u.CacheWrite
	}
	t.usage.CostUSD = plus(t.usage.CostUSD, e.CostUSD)
	t.usage.ContextTokens, t.usage.ContextWindow = e.ContextTokens, e.ContextWindow
}

func plus(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := *a + *b
	return &sum
}

func (t *transcript) finished(e agent.Event) []change {
	end := &Turn{
		Number: e.Turn, Stop: string(e.Stop), Budget: e.Budget, CostPartial: e.CostPartial, DurationMS: e.DurationMS, ModelCalls: e.ModelCalls,
	}
	if e.Error != nil {
		end.Error = &Failure{e.Error.Kind, e.Error.Message, e.Error.Hint}
	}
	if u := e.Usage; u != nil {
		end.Usage = &Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, CostUSD: e.CostUSD}
	}
	return t.end(e.Time, end)
}

// end ends the turn that runs, and the calls in it that have no end.
func (t *transcript) end(at time.Time, how *Turn) (changes []change) {
	if !t.open {
		return nil
	}
	t.open, t.reply = false, -1
	for i := len(t.items) - 1; i >= 0 && t.items[i].Type != "user"; i-- {
		if call := t.items[i].Tool; call != nil && (call.Status == "running" || call.Status == "pending") {
			ended := *call
			ended.Status, ended.Output = "failed", "interrupted: this call did not finish, and effects it already made may remain; it was not run again"
			t.items[i].Tool = &ended
			changes = append(changes, change{Index: i})
		}
	}
	return append(changes, t.push(Item{Type: "turn", Turn: how, Time: at})...)
}
