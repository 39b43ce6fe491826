package agent

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// When the history takes more than fullShare of the model's window, the results
// of old calls are shortened until it takes no more than roomyShare. The gap
// between the two keeps the beginning of the history, which providers cache,
// unchanged for many steps.
const (
	fullShare  = 0.8
	roomyShare = 0.5

	keepOld    = 600     // bytes that stay of an old result
	keepRecent = 4 << 10 // and of one of the latest step, which only an overflow shortens

	// bytesPerToken is a low guess, so that what a provider has not counted yet
	// is rather taken for too much.
	bytesPerToken = 3
)

// meter estimates how many tokens the next request will take: what the provider
// counted last, and a guess for what came since.
type meter struct {
	counted int64 // tokens, 0 while no provider has counted
	since   int64 // bytes that came after it; from the start on before
}

func newMeter(a *Agent) meter {
	m := meter{since: int64(len(a.system))}
	for _, s := range a.specs {
		m.since += int64(len(s.Name) + len(s.Description) + len(s.Schema))
	}
	return m
}

func (m *meter) tokens() int64 { return m.counted + m.since/bytesPerToken }

func (m *meter) add(e Event) {
	switch e.Type {
	case TurnStarted, AssistantMessage:
		m.since += messageBytes(e.Message)
	case ToolCallFinished:
		if e.Result != nil {
			m.since += int64(len(e.Result.Text))
		}
	case UsageReported:
		if e.Usage != nil && e.Usage.Context() > 0 {
			m.counted, m.since = e.Usage.Context()+e.Usage.Output, 0
		}
	case ContextShortened:
		if e.Shortened != nil {
			m.since -= int64(e.Shortened.Bytes)
		}
	}
}

func messageBytes(m *Message) int64 {
	if m == nil {
		return 0
	}
	n := 0
	for _, b := range m.Blocks {
		n += len(b.Text)
		if b.Call != nil {
			n += len(b.Call.Name) + len(b.Call.Input)
		}
	}
	return int64(n)
}

// makeRoom shortens results of old calls when the window is nearly full.
func (t *turn) makeRoom() {
	window := t.agent.facts.ContextWindow
	used := t.context.tokens()
	if window <= 0 || float64(used) <= fullShare*float64(window) {
		return
	}
	excess := (used - int64(roomyShare*float64(window))) * bytesPerToken
	t.shorten("near_window", t.history.oldResults(), keepOld, int(excess))
}

// makeRoomAfterOverflow shortens all that can be, once a turn, and reports
// whether that was anything.
func (t *turn) makeRoomAfterOverflow() bool {
	if t.overflowed {
		return false
	}
	t.overflowed = true
	old := t.shorten("overflow", t.history.oldResults(), keepOld, 0)
	return t.shorten("overflow", t.history.latestResults(), keepRecent, 0) || old
}

// shorten cuts results, the oldest first, until enough bytes are left out; zero
// means all of them. It reports whether there was anything to cut.
func (t *turn) shorten(reason string, results []Block, keep, enough int) bool {
	s := Shortened{Reason: reason, Keep: keep}
	for _, r := range results {
		if left := len(r.Text) - len(shortened(r.Text, keep)); left > 0 {
			s.Calls = append(s.Calls, r.CallID)
			s.Bytes += left
		}
		if enough > 0 && s.Bytes >= enough {
			break
		}
	}
	if len(s.Calls) == 0 {
		return false
	}
	t.emit(Event{Type: ContextShortened, Shortened: &s})
	return true
}

// shortened keeps the beginning and the end of a result. It is s when that
// would not save much.
func shortened(s string, keep int) string {
	const worthIt = 200
	if len(s) <= keep+worthIt {
		return s
	}
	head, tail := keep*2/3, len(s)-keep/3
	for !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d bytes of this result are left out to save room; run it again for the rest …]\n%s", s[:head], tail-head, s[tail:])
}

// oldResults are the results that are not of the latest step, in order.
func (f *folder) oldResults() []Block {
	f.settle()
	return resultsOf(f.messages[:f.latestStep()])
}

// latestResults are those that the model has not seen yet.
func (f *folder) latestResults() []Block {
	f.settle()
	return resultsOf(f.messages[f.latestStep():])
}

// latestStep is the index of the last message if that holds results, else the
// number of messages.
func (f *folder) latestStep() int {
	n := len(f.messages)
	if n > 0 && f.messages[n-1].Role == RoleTool {
		return n - 1
	}
	return n
}

func resultsOf(messages []Message) []Block {
	var results []Block
	for _, m := range messages {
		if m.Role == RoleTool {
			results = append(results, m.Blocks...)
		}
	}
	return results
}

// shorten replaces the results of some calls. Messages that were handed out
// stay as they are.
func (f *folder) shorten(s Shortened) {
	calls := make(map[string]bool, len(s.Calls))
	for _, id := range s.Calls {
		calls[id] = true
	}
	for i, m := range f.messages {
		if m.Role != RoleTool || !slices.ContainsFunc(m.Blocks, func(b Block) bool { return calls[b.CallID] }) {
			continue
		}
		m.Blocks = slices.Clone(m.Blocks)
		for j := range m.Blocks {
			if calls[m.Blocks[j].CallID] {
				m.Blocks[j].Text = shortened(m.Blocks[j].Text, s.Keep)
			}
		}
		f.messages[i] = m
	}
}
