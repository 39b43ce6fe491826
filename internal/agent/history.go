package agent

import (
	"slices"
	"strings"
)

// NotRun is the note of a call that the turn's end came before.
const NotRun = "not run"

// Texts that stand in a history for what never came.
const (
	interruptedResult = "interrupted: this call did not finish, and effects it already made may remain; it was not run again"
	// SkippedResult is the result of a call that the turn's end came before.
	SkippedResult = NotRun + ": the turn ended before this call"
)

// History folds the events of a session into the messages that a model gets
// next. Whatever happened (a cancel, a crash, a failed reply), the outcome is a
// valid conversation: every call has exactly one result, results follow their
// calls in call order, nothing is empty.
func History(events []Event) []Message {
	var f folder
	for _, e := range events {
		f.add(e)
	}
	return f.close()
}

// Interrupted are the events that end the last turn of a session whose process
// ended in the middle of it; nil when it did not. Calls without a result get
// one that says so. Nothing is run.
func Interrupted(events []Event) []Event {
	if len(events) == 0 || events[len(events)-1].Type == TurnFinished {
		return nil
	}
	last := events[len(events)-1]
	var usage Usage
	var calls []*Call
	started, done := map[string]bool{}, map[string]bool{}
	for _, e := range events {
		if e.Turn != last.Turn {
			continue
		}
		switch e.Type {
		case AssistantMessage:
			for _, b := range e.Message.Blocks {
				if b.Type == BlockCall {
					calls = append(calls, b.Call)
				}
			}
		case ToolCallStarted:
			started[e.CallID] = true
		case ToolCallFinished:
			done[e.CallID] = true
		case UsageReported:
			usage = usage.Add(*e.Usage)
		}
	}
	var ends []Event
	for _, c := range calls {
		if !started[c.ID] {
			ends = append(ends, Event{Type: ToolCallStarted, Call: c, CallID: c.ID, Tool: c.Name, Note: NotRun})
		}
		if !done[c.ID] {
			text := interruptedResult
			if !started[c.ID] {
				text = SkippedResult
			}
			ends = append(ends, Event{Type: ToolCallFinished, CallID: c.ID, Tool: c.Name, Result: &Result{Status: Failed, Text: text}})
		}
	}
	ends = append(ends, Event{Type: TurnFinished, Stop: StopInterrupted, Usage: &usage, CostPartial: true})
	for i := range ends {
		e := &ends[i]
		e.Seq, e.Time, e.Session, e.Turn = last.Seq+int64(i)+1, last.Time, last.Session, last.Turn
	}
	return ends
}

// folder is the state of [History].
type folder struct {
	messages []Message
	model    string
	partial  strings.Builder // text shown since the last whole reply
	open     []*Call         // calls of the last reply
	results  map[string]Block
}

// close ends what is open and returns the messages. They stay as they are when
// more events are added.
func (f *folder) close() []Message {
	f.settle()
	return slices.Clone(f.messages)
}

func (f *folder) settle() {
	f.closeReply()
	f.closeCalls()
}

func (f *folder) add(e Event) {
	switch e.Type {
	case TurnStarted:
		f.settle()
		f.model = e.Model
		if e.Message != nil {
			f.append(*e.Message)
		}
	case TextDelta:
		f.closeCalls()
		f.partial.WriteString(e.Text)
	case AssistantMessage:
		f.partial.Reset()
		f.closeCalls()
		if e.Message != nil {
			f.reply(*e.Message)
		}
	case ToolCallFinished:
		if e.Result != nil && f.results != nil {
			f.results[e.CallID] = resultBlock(e.CallID, *e.Result)
		}
	case ContextShortened:
		f.settle()
		if e.Shortened != nil {
			f.shorten(*e.Shortened)
		}
	case TurnFinished:
		f.settle()
	}
}

func (f *folder) reply(m Message) {
	f.append(m)
	for _, b := range m.Blocks {
		if b.Type == BlockCall {
			f.open = append(f.open, b.Call)
		}
	}
	f.results = make(map[string]Block, len(f.open))
}

// closeReply keeps the text of a reply that was shown but never completed.
func (f *folder) closeReply() {
	text := f.partial.String()
	f.partial.Reset()
	if strings.TrimSpace(text) != "" {
		f.closeCalls()
		f.append(Message{Role: RoleAssistant, Model: f.model, Blocks: []Block{Text(text)}})
	}
}

// closeCalls writes the results of the last reply's calls, in call order.
func (f *folder) closeCalls() {
	if len(f.open) == 0 {
		return
	}
	m := Message{Role: RoleTool}
	for _, call := range f.open {
		block, ok := f.results[call.ID]
		if !ok {
			block = resultBlock(call.ID, Result{Status: Failed, Text: interruptedResult})
		}
		m.Blocks = append(m.Blocks, block)
	}
	f.open, f.results = nil, nil
	f.append(m)
}

// append adds m without its blank text; a message that has nothing else is left
// out.
func (f *folder) append(m Message) {
	blocks := make([]Block, 0, len(m.Blocks))
	for _, b := range m.Blocks {
		if b.Type == BlockText && strings.TrimSpace(b.Text) == "" {
			continue
		}
		blocks = append(blocks, b)
	}
	if len(blocks) == 0 {
		return
	}
	m.Blocks = blocks
	f.messages = append(f.messages, m)
}

func resultBlock(callID string, r Result) Block {
	text := r.Text
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	return Block{Type: BlockResult, CallID: callID, Text: text, IsError: r.Status == Failed}
}
