package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

func TestMain(m *testing.M) {
	jail.Main() // of the examples
	goleak.VerifyTestMain(m)
}

// fakeModel plays one function per model call and keeps what it was asked. The
// last function repeats.
type fakeModel struct {
	replies  []func(context.Context, func(Part) bool) error
	requests []Request
}

func (m *fakeModel) Name() string { return "fake/model" }

func (m *fakeModel) Stream(ctx context.Context, req Request) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		n := min(len(m.requests), len(m.replies)-1)
		m.requests = append(m.requests, req)
		gone := false
		err := m.replies[n](ctx, func(p Part) bool { gone = gone || !yield(p, nil); return !gone })
		if err != nil && !gone {
			yield(Part{}, err)
		}
	}
}

func parts(list ...Part) func(context.Context, func(Part) bool) error {
	return func(_ context.Context, yield func(Part) bool) error {
		for _, p := range list {
			if !yield(p) {
				return nil
			}
		}
		return nil
	}
}

func text(s string) func(context.Context, func(Part) bool) error {
	return parts(Part{Text: s}, Part{Usage: &Usage{Input: 10, Output: 2}}, Part{Finish: FinishStop})
}

func calls(list ...Call) func(context.Context, func(Part) bool) error {
	var p []Part
	for _, c := range list {
		p = append(p, Part{Call: &c})
	}
	return parts(append(p, Part{Usage: &Usage{Input: 10, Output: 2}}, Part{Finish: FinishCalls})...)
}

func fails(err error) func(context.Context, func(Part) bool) error {
	return func(context.Context, func(Part) bool) error { return err }
}

// fakeTool is a tool made of a function.
type fakeTool struct {
	name   string
	schema string
	call   func(context.Context, json.RawMessage, func(Progress)) Result
}

func (t fakeTool) Spec() ToolSpec {
	return ToolSpec{Name: t.name, Schema: json.RawMessage(t.schema)}
}

func (t fakeTool) Call(ctx context.Context, in Invocation, report func(Progress)) Result {
	return t.call(ctx, in.Input, report)
}

func executeTool(f func(context.Context, json.RawMessage, func(Progress)) Result) fakeTool {
	return fakeTool{ExecuteTool, string(executeSchema), f}
}

var echo = executeTool(func(_ context.Context, in json.RawMessage, _ func(Progress)) Result {
	return Result{Status: Completed, Text: string(in)}
})

func newAgent(t *testing.T, m Model, limits Limits, tools ...Tool) *Agent {
	t.Helper()
	return newAgentWith(t, Options{Model: m, Limits: limits, Tools: tools})
}

func newAgentWith(t *testing.T, o Options) *Agent {
	t.Helper()
	o.System = "system"
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func runTurn(a *Agent, s Session, prompt string) []Event {
	return slices.Collect(a.Run(context.Background(), s, []Block{Text(prompt)}))
}

func newSession() Session { return Session{ID: "s", Log: &MemoryLog{}} }

func execCall(id, input string) Call {
	return Call{ID: id, Name: ExecuteTool, Input: json.RawMessage(input)}
}

func last(t *testing.T, events []Event) Event {
	t.Helper()
	for i, e := range events {
		if (e.Type == TurnFinished) != (i == len(events)-1) {
			t.Fatalf("event %d of %d is %s: TurnFinished must be the last one, and only that", i+1, len(events), e.Type)
		}
		if e.Seq != events[0].Seq+int64(i) {
			t.Fatalf("event %d has seq %d", i+1, e.Seq)
		}
	}
	return events[len(events)-1]
}

func results(events []Event) []string {
	var list []string
	for _, e := range events {
		if e.Type == ToolCallFinished {
			list = append(list, fmt.Sprintf("%s %s: %s", e.CallID, e.Result.Status, e.Result.Text))
		}
	}
	return list
}

func TestRun_AnswersEachCallOnceInOrderAndSumsUsage(t *testing.T) {
	m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{
		calls(execCall("a", `{"name":"x"}`), execCall("b", `{"name":"y","args":"{\"n\":9007199254740993}"}`)),
		text("done"),
	}}
	s := newSession()
	events := runTurn(newAgent(t, m, Limits{}, echo), s, "go")
	end := last(t, events)
	if end.Stop != StopEndTurn || *end.Usage != (Usage{Input: 20, Output: 4}) || end.ModelCalls != 2 {
		t.Errorf("got %+v", end)
	}
	want := []string{`a completed: {"name":"x"}`, `b completed: {"args":{"n":9007199254740993},"name":"y"}`}
	if got := results(events); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	messages := m.requests[1].Messages
	if len(messages) != 3 || messages[2].Role != RoleTool || messages[2].Blocks[0].CallID != "a" || messages[2].Blocks[1].CallID != "b" {
		t.Errorf("second request: %+v", messages)
	}
	logged, _ := s.Log.Events(context.Background())
	if len(logged) != len(events) {
		t.Errorf("%d events logged, %d shown", len(logged), len(events))
	}
}

func TestRun_BadCallsRunNothingAndSayWhy(t *testing.T) {
	ran := false
	tool := executeTool(func(context.Context, json.RawMessage, func(Progress)) Result { ran = true; return Result{} })
	for name, c := range map[string]struct {
		call Call
		want string
	}{
		"missing required field": {execCall("a", `{}`), "missing property 'name'"},
		"wrong type":             {execCall("a", `{"name":7}`), "input.name: got number, want string"},
		"field in another case":  {execCall("a", `{"name":"x","NAME":"y"}`), `does not take "NAME"`},
		"unknown field":          {execCall("a", `{"name":"x","code":"1"}`), `does not take "code"`},
		"args no object":         {execCall("a", `{"name":"x","args":"[1]"}`), "input.args: got string, want object"},
		"malformed":              {Call{ID: "a", Name: ExecuteTool, Malformed: `{"name":`}, "not a valid JSON object"},
		"unknown tool":           {Call{ID: "a", Name: "browser.open", Input: json.RawMessage(`{}`)}, `unknown tool "browser.open"`},
		"empty tool name":        {Call{ID: "a", Input: json.RawMessage(`{}`)}, `unknown tool ""`},
	} {
		t.Run(name, func(t *testing.T) {
			m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{calls(c.call), text("ok")}}
			events := runTurn(newAgent(t, m, Limits{}, tool), newSession(), "go")
			got := results(events)
			if len(got) != 1 || !strings.Contains(got[0], "failed") || !strings.Contains(got[0], c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if last(t, events).Stop != StopEndTurn {
				t.Errorf("the turn did not go on")
			}
		})
	}
	if ran {
		t.Error("the tool ran")
	}
}

func TestRun_BlankOptionalObjectsAreLeftOut(t *testing.T) {
	for _, input := range []string{`{"name":"x","args":""}`, `{"name":"x","args":"  "}`, `{"name":"x","args":null}`} {
		m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{calls(execCall("a", input)), text("ok")}}
		got := results(runTurn(newAgent(t, m, Limits{}, echo), newSession(), "go"))
		if !slices.Equal(got, []string{`a completed: {"name":"x"}`}) {
			t.Errorf("%s: got %q", input, got)
		}
	}
}

func TestRun_StopsAtMaxTurnsAndAtALoop(t *testing.T) {
	for name, c := range map[string]struct {
		limits   Limits
		want     StopReason
		requests int
	}{
		"max turns": {Limits{MaxTurns: 5}, StopMaxTurns, 5},
		"loop":      {Limits{}, StopLoop, maxIdenticalCalls},
	} {
		t.Run(name, func(t *testing.T) {
			m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{calls(execCall("same", `{"name":"x"}`))}}
			s := newSession()
			a := newAgent(t, m, c.limits, echo)
			if end := last(t, runTurn(a, s, "go")); end.Stop != c.want || len(m.requests) != c.requests {
				t.Errorf("got %s after %d requests", end.Stop, len(m.requests))
			}
			if end := last(t, runTurn(a, s, "again")); end.Stop != c.want {
				t.Errorf("the next prompt does not count anew: %+v", end)
			}
			checkHistory(t, s)
		})
	}
}

func TestRun_CancelEndsModelAndToolWithinASecond(t *testing.T) {
	hang := func(ctx context.Context, yield func(Part) bool) error {
		yield(Part{Text: "half an ans"})
		<-ctx.Done()
		return ctx.Err()
	}
	slow := executeTool(func(ctx context.Context, _ json.RawMessage, _ func(Progress)) Result {
		<-ctx.Done()
		return Result{Status: Failed, Text: "cancelled"}
	})
	for name, m := range map[string]*fakeModel{
		"model": {replies: []func(context.Context, func(Part) bool) error{hang, text("next")}},
		"tool":  {replies: []func(context.Context, func(Part) bool) error{calls(execCall("a", `{"name":"x"}`), execCall("b", `{"name":"y"}`)), text("next")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession()
			a := newAgent(t, m, Limits{}, slow)
			ctx, cancel := context.WithCancel(context.Background())
			var events []Event
			for e := range a.Run(ctx, s, []Block{Text("go")}) {
				events = append(events, e)
				if e.Type == TextDelta || e.Type == ToolCallStarted {
					cancel()
				}
			}
			cancel()
			if end := last(t, events); end.Stop != StopCancelled || end.Error != nil {
				t.Errorf("got %+v", end)
			}
			if end := last(t, runTurn(a, s, "next")); end.Stop != StopEndTurn {
				t.Errorf("the next prompt: %+v", end)
			}
			checkHistory(t, s)
		})
	}
}

func TestRun_ConsumerThatLeavesCancelsTheTurn(t *testing.T) {
	s := newSession()
	a := newAgent(t, &fakeModel{replies: []func(context.Context, func(Part) bool) error{
		func(ctx context.Context, yield func(Part) bool) error {
			yield(Part{Text: "x"})
			<-ctx.Done()
			return ctx.Err()
		},
	}}, Limits{})
	for e := range a.Run(context.Background(), s, []Block{Text("go")}) {
		if e.Type == TextDelta {
			break
		}
	}
	logged, _ := s.Log.Events(context.Background())
	if end := last(t, logged); end.Stop != StopCancelled {
		t.Errorf("got %+v", end)
	}
}

func TestRun_TimeoutIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, &fakeModel{replies: []func(context.Context, func(Part) bool) error{
			func(ctx context.Context, _ func(Part) bool) error { <-ctx.Done(); return ctx.Err() },
		}}, Limits{Timeout: time.Minute})
		if end := last(t, runTurn(a, newSession(), "go")); end.Stop != StopTimeout {
			t.Errorf("got %+v", end)
		}
	})
}

func TestRun_PanicOfAToolIsAnErrorResult(t *testing.T) {
	m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{calls(execCall("a", `{"name":"x"}`)), text("ok")}}
	boom := executeTool(func(context.Context, json.RawMessage, func(Progress)) Result { panic("secret internals") })
	events := runTurn(newAgent(t, m, Limits{}, boom), newSession(), "go")
	got := results(events)
	if len(got) != 1 || !strings.Contains(got[0], "failed inside Tendril") || strings.Contains(got[0], "secret internals") {
		t.Errorf("got %q", got)
	}
	if last(t, events).Stop != StopEndTurn {
		t.Error("the turn did not go on")
	}
}

func TestRun_ProgressIsShownBetweenStartAndFinish(t *testing.T) {
	m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{calls(execCall("a", `{"name":"x"}`)), text("ok")}}
	var late atomic.Pointer[func(Progress)]
	tool := executeTool(func(_ context.Context, _ json.RawMessage, report func(Progress)) Result {
		late.Store(&report)
		report(Progress{Step: "one"})
		report(Progress{Step: "two"})
		return Result{Status: Completed, Text: "r"}
	})
	var types []EventType
	for _, e := range runTurn(newAgent(t, m, Limits{}, tool), newSession(), "go") {
		types = append(types, e.Type)
	}
	(*late.Load())(Progress{Step: "too late"}) // must neither block nor panic
	want := []EventType{
		TurnStarted, AssistantMessage, UsageReported, ToolCallStarted, ToolCallProgress, ToolCallProgress,
		ToolCallFinished, TextDelta, AssistantMessage, UsageReported, TurnFinished,
	}
	if !slices.Equal(types, want) {
		t.Errorf("got %v", types)
	}
}

func TestRun_RetriesTemporaryFailuresVisiblyAndBounded(t *testing.T) {
	busy := &ModelError{Kind: ErrOverloaded, Message: "busy"}
	for name, c := range map[string]struct {
		replies  []func(context.Context, func(Part) bool) error
		want     StopReason
		requests int
		atLeast  time.Duration
	}{
		"then works":       {[]func(context.Context, func(Part) bool) error{fails(busy), fails(busy), text("ok")}, StopEndTurn, 3, time.Second},
		"never works":      {[]func(context.Context, func(Part) bool) error{fails(busy)}, StopError, 1 + maxRetries, 7 * time.Second},
		"cut, then works":  {[]func(context.Context, func(Part) bool) error{fails(&ModelError{Kind: ErrCut}), text("ok")}, StopEndTurn, 2, 0},
		"made no sense":    {[]func(context.Context, func(Part) bool) error{fails(&ModelError{Kind: ErrMalformed})}, StopError, 1, 0},
		"bad certificate":  {[]func(context.Context, func(Part) bool) error{fails(&ModelError{Kind: ErrCertificate})}, StopError, 1, 0},
		"asks for 3 s":     {[]func(context.Context, func(Part) bool) error{fails(&ModelError{Kind: ErrRateLimit, RetryAfter: 3 * time.Second}), text("ok")}, StopEndTurn, 2, 3 * time.Second},
		"asks for an hour": {[]func(context.Context, func(Part) bool) error{fails(&ModelError{Kind: ErrRateLimit, RetryAfter: time.Hour})}, StopError, 1, 0},
		"not temporary":    {[]func(context.Context, func(Part) bool) error{fails(&ModelError{Kind: ErrCredentials})}, StopError, 1, 0},
		"after shown text": {[]func(context.Context, func(Part) bool) error{
			func(_ context.Context, yield func(Part) bool) error { yield(Part{Text: "par"}); return busy },
		}, StopError, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeModel{replies: c.replies}
				s := newSession()
				start := time.Now()
				events := runTurn(newAgent(t, m, Limits{}), s, "go")
				if end := last(t, events); end.Stop != c.want || len(m.requests) != c.requests || time.Since(start) < c.atLeast {
					t.Errorf("got %+v after %d requests and %s", end, len(m.requests), time.Since(start))
				}
				retries := 0
				for _, e := range events {
					if e.Type == Retry {
						retries++
					}
				}
				if retries != c.requests-1 {
					t.Errorf("%d retries shown for %d requests", retries, c.requests)
				}
				checkHistory(t, s)
			})
		})
	}
}

func TestRun_CancelEndsARetryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, &fakeModel{replies: []func(context.Context, func(Part) bool) error{fails(&ModelError{Kind: ErrRateLimit, RetryAfter: 50 * time.Second})}}, Limits{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		if end := last(t, slices.Collect(a.Run(ctx, newSession(), []Block{Text("go")}))); end.Stop != StopCancelled || time.Since(start) > 2*time.Second {
			t.Errorf("got %+v after %s", end, time.Since(start))
		}
	})
}

func TestRun_StopReasonsOfTheModel(t *testing.T) {
	for finish, want := range map[Finish]StopReason{FinishMaxTokens: StopMaxTokens, FinishRefusal: StopRefusal, FinishStop: StopEndTurn, "": StopError} {
		m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{parts(Part{Text: "x"}, Part{Finish: finish})}}
		if end := last(t, runTurn(newAgent(t, m, Limits{}), newSession(), "go")); end.Stop != want {
			t.Errorf("%q: got %s, want %s", finish, end.Stop, want)
		}
	}
	cut := &fakeModel{replies: []func(context.Context, func(Part) bool) error{parts(Part{Call: &Call{ID: "a", Name: ExecuteTool, Input: json.RawMessage(`{"name":"x"}`)}}, Part{Finish: FinishMaxTokens})}}
	s := newSession()
	events := runTurn(newAgent(t, cut, Limits{}, echo), s, "go")
	if got := results(events); len(got) != 1 || !strings.Contains(got[0], "not run") {
		t.Errorf("a call of a cut reply: %q", got)
	}
	checkHistory(t, s)
}

func TestRun_EmptyPromptAndFailingLogEndTheTurn(t *testing.T) {
	m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{text("x")}}
	a := newAgent(t, m, Limits{})
	if end := last(t, runTurn(a, newSession(), " \n")); end.Stop != StopError || !strings.Contains(end.Error.Message, "empty") {
		t.Errorf("empty prompt: %+v", end)
	}
	end := last(t, runTurn(a, Session{ID: "s", Log: brokenLog{}}, "go"))
	if end.Stop != StopError || end.Error == nil || end.Error.Kind != "store" {
		t.Errorf("failing log: %+v", end)
	}
	if len(m.requests) != 0 {
		t.Error("the model was asked")
	}
}

type brokenLog struct{}

func (brokenLog) Append(context.Context, ...Event) error  { return errors.New("disk full") }
func (brokenLog) Events(context.Context) ([]Event, error) { return nil, nil }

func TestRun_CallIDsAreUniqueInTheSession(t *testing.T) {
	m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{
		calls(execCall("c1", `{"name":"x"}`), execCall("c1", `{"name":"y"}`), execCall("", `{"name":"z"}`)), text("ok"),
		calls(execCall("c1", `{"name":"w"}`)), text("ok"),
	}}
	s := newSession()
	a := newAgent(t, m, Limits{}, echo)
	runTurn(a, s, "one")
	runTurn(a, s, "two")
	checkHistory(t, s)
}

func TestRun_NotesAnExecuteWithoutAListing(t *testing.T) {
	m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{calls(execCall("a", `{"name":"x"}`)), text("ok")}}
	for _, e := range runTurn(newAgent(t, m, Limits{}, echo), newSession(), "go") {
		if e.Type == ToolCallStarted && e.Note == "" {
			t.Error("no note")
		}
	}
}

// checkHistory fails when the session's history breaks a rule that providers
// enforce.
func checkHistory(t *testing.T, s Session) {
	t.Helper()
	events, _ := s.Log.Events(context.Background())
	for cut := range len(events) + 1 { // after a crash at any event, too
		if problem := historyProblem(History(events[:cut])); problem != "" {
			t.Fatalf("after %d of %d events: %s", cut, len(events), problem)
		}
	}
}

func historyProblem(messages []Message) string {
	seen := map[string]bool{}
	var open []string
	for i, m := range messages {
		if len(m.Blocks) == 0 {
			return fmt.Sprintf("message %d is empty", i)
		}
		if (m.Role == RoleTool) != (len(open) > 0) {
			return fmt.Sprintf("message %d is %s while the open calls are %v", i, m.Role, open)
		}
		var next []string
		for k, b := range m.Blocks {
			switch b.Type {
			case BlockResult:
				if k >= len(open) || open[k] != b.CallID || strings.TrimSpace(b.Text) == "" {
					return fmt.Sprintf("message %d: result %d is for %q, the calls are %v", i, k, b.CallID, open)
				}
			case BlockCall:
				if seen[b.Call.ID] || b.Call.ID == "" {
					return fmt.Sprintf("message %d: call id %q is not new", i, b.Call.ID)
				}
				seen[b.Call.ID] = true
				next = append(next, b.Call.ID)
			case BlockText:
				if strings.TrimSpace(b.Text) == "" {
					return fmt.Sprintf("message %d has blank text", i)
				}
			}
		}
		if m.Role == RoleTool && len(m.Blocks) != len(open) {
			return fmt.Sprintf("message %d has %d results for %d calls", i, len(m.Blocks), len(open))
		}
		open = next
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls without a result: %v", open)
	}
	return ""
}

func TestHistory_KeepsTheTextOfACrashedReply(t *testing.T) {
	got := History([]Event{
		{Type: TurnStarted, Model: "fake/model", Message: &Message{Role: RoleUser, Blocks: []Block{Text("go")}}},
		{Type: TextDelta, Text: "half "}, {Type: TextDelta, Text: "an answer"},
	})
	if len(got) != 2 || got[1].Role != RoleAssistant || got[1].Blocks[0].Text != "half an answer" {
		t.Errorf("got %+v", got)
	}
}

// contextLog fails as a database does when the context of a read has ended.
type contextLog struct{ MemoryLog }

func (l *contextLog) Events(ctx context.Context) ([]Event, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return l.MemoryLog.Events(ctx)
}

// A turn that is cancelled before it begins is kept, as cancelled.
func TestAgent_CancelledBeforeItBegins(t *testing.T) {
	a, err := New(Options{Model: &fakeModel{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log := &contextLog{}
	var last Event
	for e := range a.Run(ctx, Session{ID: "s", Log: log}, []Block{Text("hi")}) {
		last = e
	}
	if events, _ := log.Events(t.Context()); last.Stop != StopCancelled || len(events) != 2 || events[0].Message.Blocks[0].Text != "hi" {
		t.Errorf("ended with %+v; kept %+v", last, events)
	}
}
