package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// bigResults is a tool whose results are n bytes long, and end in the number of
// the run.
func bigResults(n int) fakeTool {
	runs := 0
	return executeTool(func(context.Context, json.RawMessage, func(Progress)) Result {
		runs++
		return Result{Status: Completed, Text: strings.Repeat("é", n/2) + fmt.Sprint(" run ", runs)}
	})
}

// toolSteps are n steps of one call each, and then an answer.
func toolSteps(n int, usage *Usage) []func(context.Context, func(Part) bool) error {
	var replies []func(context.Context, func(Part) bool) error
	for i := range n {
		list := []Part{{Call: &Call{ID: fmt.Sprint("c", i), Name: ExecuteTool, Input: json.RawMessage(fmt.Sprintf(`{"name":"n%d"}`, i))}}}
		if usage != nil {
			list = append(list, Part{Usage: usage})
		}
		replies = append(replies, parts(append(list, Part{Finish: FinishCalls})...))
	}
	return append(replies, text("done"))
}

func shortenings(events []Event) []Shortened {
	var list []Shortened
	for _, e := range events {
		if e.Type == ContextShortened {
			list = append(list, *e.Shortened)
		}
	}
	return list
}

func requestBytes(r Request) int64 {
	var n int64
	for _, m := range r.Messages {
		n += messageBytes(&m)
	}
	return n
}

// TestRun_ShortensOldResultsNearTheWindow keeps each request below the window,
// the latest results whole, the session's events whole, and the beginning of the
// history unchanged for several steps at a time.
func TestRun_ShortensOldResultsNearTheWindow(t *testing.T) {
	const window = 20_000 // tokens
	m := &fakeModel{replies: toolSteps(40, nil)}
	s := newSession()
	a := newAgentWith(t, Options{Model: m, Facts: Facts{ContextWindow: window}, Tools: []Tool{bigResults(6000)}})
	events := runTurn(a, s, "go")
	if end := last(t, events); end.Stop != StopEndTurn {
		t.Fatalf("%+v", end)
	}
	cuts := shortenings(events)
	if len(cuts) < 2 || len(cuts) > 15 {
		t.Errorf("%d shortenings in 40 steps", len(cuts))
	}
	for i, r := range m.requests {
		if n := requestBytes(r) / bytesPerToken; n > window*9/10 {
			t.Errorf("request %d takes about %d tokens", i, n)
		}
		if i == 0 {
			continue
		}
		latest := r.Messages[len(r.Messages)-1].Blocks[0].Text
		if len(latest) < 6000 {
			t.Errorf("request %d: the latest result has %d bytes", i, len(latest))
		}
	}
	for _, e := range events {
		if e.Type == ToolCallFinished && len(e.Result.Text) < 6000 {
			t.Errorf("the event of %s lost text", e.CallID)
		}
	}
	checkHistory(t, s)
	// Another process sees the same.
	again := &fakeModel{replies: []func(context.Context, func(Part) bool) error{text("ok")}}
	runTurn(newAgentWith(t, Options{Model: again, Facts: Facts{ContextWindow: window}}), s, "and?")
	before, after := m.requests[len(m.requests)-1].Messages, again.requests[0].Messages
	for i := range before {
		if x, y := fmt.Sprintf("%+v", before[i].Blocks), fmt.Sprintf("%+v", after[i].Blocks); i < len(before)-1 && len(x) != len(y) {
			t.Errorf("message %d differs after loading", i)
		}
	}
}

// TestRun_MeterTrustsTheProvider shortens by what the provider counted, not by
// the length of the text.
func TestRun_MeterTrustsTheProvider(t *testing.T) {
	for used, want := range map[int64]bool{100: false, 7000: false, 8500: true} {
		m := &fakeModel{replies: toolSteps(3, &Usage{CacheRead: used - 100, Input: 50, CacheWrite: 50})}
		events := runTurn(newAgentWith(t, Options{Model: m, Facts: Facts{ContextWindow: 10_000}, Tools: []Tool{bigResults(2000)}}), newSession(), "go")
		if got := len(shortenings(events)) > 0; got != want {
			t.Errorf("%d of 10000 tokens: shortened is %v", used, got)
		}
	}
	m := &fakeModel{replies: toolSteps(3, &Usage{Input: 1e9})}
	if events := runTurn(newAgentWith(t, Options{Model: m, Tools: []Tool{bigResults(2000)}}), newSession(), "go"); len(shortenings(events)) > 0 {
		t.Error("shortened for an unknown window")
	}
}

var overflow = fails(&ModelError{Kind: ErrOverflow, Message: "too long", Hint: "start a new session"})

func TestRun_OverflowIsHandledOnce(t *testing.T) {
	replies := toolSteps(3, nil)
	tests := map[string]struct {
		replies  []func(context.Context, func(Part) bool) error
		size     int
		requests int
		stop     StopReason
	}{
		"mended":             {append(append([]func(context.Context, func(Part) bool) error{}, replies[:3]...), overflow, text("done")), 9000, 5, StopEndTurn},
		"the latest is huge": {append(append([]func(context.Context, func(Part) bool) error{}, replies[:1]...), overflow, text("done")), 30_000, 3, StopEndTurn},
		"for ever":           {append(append([]func(context.Context, func(Part) bool) error{}, replies[:3]...), overflow), 9000, 5, StopError},
		"nothing to shorten": {append(append([]func(context.Context, func(Part) bool) error{}, replies[:3]...), overflow), 20, 4, StopError},
		"at once":            {[]func(context.Context, func(Part) bool) error{overflow}, 20, 1, StopError},
	}
	for name, tt := range tests {
		m := &fakeModel{replies: tt.replies}
		s := newSession()
		a := newAgentWith(t, Options{Model: m, Tools: []Tool{bigResults(tt.size)}})
		events := runTurn(a, s, "go")
		end := last(t, events)
		if end.Stop != tt.stop || len(m.requests) != tt.requests || (end.Error != nil) != (tt.stop == StopError) {
			t.Errorf("%s: %s after %d requests, %+v", name, end.Stop, len(m.requests), end.Error)
		}
		if end.Error != nil && end.Error.Hint == "" {
			t.Errorf("%s: no hint", name)
		}
		checkHistory(t, s)
		m.replies = []func(context.Context, func(Part) bool) error{text("ok")}
		if end := last(t, runTurn(a, s, "again")); end.Stop != StopEndTurn {
			t.Errorf("%s: the session takes no other prompt: %+v", name, end)
		}
	}
}

func TestShortened_CutsBetweenCharacters(t *testing.T) {
	for n := range 3000 {
		s := strings.Repeat("x", n%4) + strings.Repeat("😀", n)
		for _, keep := range []int{0, 1, 10, keepOld, keepRecent} {
			got := shortened(s, keep)
			if !utf8.ValidString(got) || len(got) > len(s) || len(got) > keep+200 {
				t.Fatalf("%d bytes, keep %d: %d bytes, valid %v", len(s), keep, len(got), utf8.ValidString(got))
			}
		}
	}
}

// TestHoldClock_QuestionsTakeNoTime asks a person in a tool for longer than the
// turn may take.
func TestHoldClock_QuestionsTakeNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asking := executeTool(func(ctx context.Context, _ json.RawMessage, _ func(Progress)) Result {
			release := HoldClock(ctx)
			inner := HoldClock(ctx)
			time.Sleep(time.Hour)
			inner()
			inner()
			time.Sleep(time.Hour)
			release()
			time.Sleep(40 * time.Second)
			return Result{Status: Completed, Text: fmt.Sprint(ctx.Err())}
		})
		m := &fakeModel{replies: toolSteps(2, nil)}
		events := runTurn(newAgentWith(t, Options{Model: m, Limits: Limits{Timeout: time.Minute}, Tools: []Tool{asking}}), newSession(), "go")
		end := last(t, events)
		if end.Stop != StopTimeout || len(m.requests) != 2 {
			t.Errorf("%s after %d requests: the second call makes 80 seconds", end.Stop, len(m.requests))
		}
	})
	HoldClock(context.Background())()
}
