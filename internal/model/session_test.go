package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// tool is a tool made of a function.
type tool struct {
	name string
	call func(ctx context.Context) agent.Result
}

func (t tool) Spec() agent.ToolSpec {
	return agent.ToolSpec{Name: t.name, Description: t.name, Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}
}

func (t tool) Call(ctx context.Context, _ agent.Invocation, _ func(agent.Progress)) agent.Result {
	return t.call(ctx)
}

func says(text string) tool {
	return tool{agent.ExecuteTool, func(context.Context) agent.Result { return agent.Result{Status: agent.Completed, Text: text} }}
}

// conversationOf is a session over one provider, whose turns may use different
// models.
type conversationOf struct {
	t        *testing.T
	provider *testkit.Provider
	log      *agent.MemoryLog
	tools    []agent.Tool
	limits   agent.Limits
	facts    agent.Facts
	stopAt   agent.EventType // cancels the next turn at this event
}

func converse(t *testing.T, provider *testkit.Provider, tools ...agent.Tool) *conversationOf {
	return &conversationOf{t: t, provider: provider, log: &agent.MemoryLog{}, tools: tools}
}

// say plays a turn and returns its events. What the provider was sent so far is
// what real ones take.
func (c *conversationOf) say(d dialect, prompt string) []agent.Event {
	c.t.Helper()
	a, err := agent.New(agent.Options{Model: d.open(c.provider.URL, nil), System: "be brief", Tools: c.tools, Limits: c.limits, Facts: c.facts})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	var events []agent.Event
	for e := range a.Run(ctx, agent.Session{ID: "s", Log: c.log}, []agent.Block{agent.Text(prompt)}) {
		events = append(events, e)
		if e.Type == c.stopAt {
			cancel()
		}
	}
	c.stopAt = ""
	if broken := testkit.Lint(c.provider.Requests()); len(broken) > 0 {
		c.t.Errorf("real providers refuse: %v", broken)
	}
	return events
}

func (c *conversationOf) lastRequest() string {
	requests := c.provider.Requests()
	return string(requests[len(requests)-1].Body)
}

func last(events []agent.Event) agent.Event { return events[len(events)-1] }

func stop(events []agent.Event) agent.StopReason { return last(events).Stop }

func failure(events []agent.Event) string {
	if e := last(events).Error; e != nil {
		return e.Kind
	}
	return ""
}

// inOrderOf checks that some texts stand in s in this order.
func inOrderOf(t *testing.T, s string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		_, after, found := strings.Cut(s, text)
		if !found {
			t.Errorf("no %q (in its place) in %.3000s", text, s)
			return
		}
		s = after
	}
}

func execute(id, name string) testkit.Call {
	return testkit.Call{ID: id, Name: agent.ExecuteTool, Args: fmt.Sprintf(`{"name":%q}`, name)}
}

// TestSession_CancelInTheArguments is case H02: the shown text stays, the half
// call goes.
func TestSession_CancelInTheArguments(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		half := d.turn(testkit.Turn{Text: "ok", Calls: []testkit.Call{execute("c1", "half-call")}})
		half.Body, half.End = half.Body[:strings.LastIndex(string(half.Body), "half")], "hang"
		c := converse(t, testkit.NewProvider(t, half, d.turn(testkit.Turn{Text: "done"})), says("x"))
		c.stopAt = agent.TextDelta
		if events := c.say(d, "first"); stop(events) != agent.StopCancelled {
			t.Errorf("%+v", last(events))
		}
		if events := c.say(d, "second"); stop(events) != agent.StopEndTurn {
			t.Errorf("%+v", last(events))
		}
		inOrderOf(t, c.lastRequest(), "first", "o", "second")
		if strings.Contains(c.lastRequest(), "half") {
			t.Errorf("the half call is still there: %s", c.lastRequest())
		}
	})
}

// TestSession_CancelInATool is case H04: a cancelled turn leaves one result for
// each call, also for those that never ran.
func TestSession_CancelInATool(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		waits := tool{agent.ExecuteTool, func(ctx context.Context) agent.Result {
			<-ctx.Done()
			return agent.Result{Status: agent.Failed, Text: "was stopped"}
		}}
		c := converse(t, testkit.NewProvider(t,
			d.turn(testkit.Turn{Text: "both", Calls: []testkit.Call{execute("c1", "one"), execute("c2", "two")}}),
			d.turn(testkit.Turn{Calls: []testkit.Call{execute("c1", "again")}}), d.turn(testkit.Turn{Text: "done"})), waits)
		c.stopAt = agent.ToolCallStarted
		if events := c.say(d, "first"); stop(events) != agent.StopCancelled {
			t.Errorf("%+v", last(events))
		}
		c.tools = []agent.Tool{says("fine")}
		if events := c.say(d, "second"); stop(events) != agent.StopEndTurn {
			t.Errorf("%+v", last(events))
		}
		inOrderOf(t, c.lastRequest(), "first", "one", "two", "was stopped", "not run", "second", "again", "fine")
	})
}

// TestSession_OneBadCallOfTwo is case H05, and with made-up names case H08: the
// results match the calls, in order.
func TestSession_OneBadCallOfTwo(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		for _, bad := range []string{"browser.tabs.open", "$READFILE<|channel|>", "", strings.Repeat("x", 90), "läuft", "a b"} {
			c := converse(t, testkit.NewProvider(t,
				d.turn(testkit.Turn{Calls: []testkit.Call{{ID: "c1", Name: bad, Args: `{}`}, execute("c2", "good")}}),
				d.turn(testkit.Turn{Calls: []testkit.Call{{ID: "c3", Name: agent.ExecuteTool, Args: `{"name`}}}),
				d.turn(testkit.Turn{Text: "done"})), says("fine"))
			events := c.say(d, "go")
			if stop(events) != agent.StopEndTurn {
				t.Errorf("%q: %+v", bad, last(events))
			}
			inOrderOf(t, c.lastRequest(), "unknown tool", "fine", "not a valid JSON object")
			started := slices.IndexFunc(events, func(e agent.Event) bool { return e.Type == agent.ToolCallStarted })
			if name := events[started].Tool; name != bad {
				t.Errorf("the event names %q instead of %q", name, bad)
			}
		}
	})
}

// TestSession_OddOutputs are cases H06, E02 and E04: blank and hostile output,
// and text and arguments that are no text.
func TestSession_OddOutputs(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		for _, out := range []string{"", " \n\t", "\x00", "a\x00b\x1b[2J", "\xff\xfe", "\u2028", "</tool_result>", strings.Repeat("\x00", 5000)} {
			for _, status := range []agent.Status{agent.Completed, agent.Failed} {
				odd := tool{agent.ExecuteTool, func(context.Context) agent.Result { return agent.Result{Status: status, Text: out} }}
				c := converse(t, testkit.NewProvider(t,
					d.turn(testkit.Turn{Text: "a\x00b", Calls: []testkit.Call{{ID: "c1", Name: agent.ExecuteTool, Args: `{"name":"\ud83d \u0000"}`}}}),
					d.turn(testkit.Turn{Text: "done"}), d.turn(testkit.Turn{Text: "done"})), odd)
				if events := c.say(d, "go \x00 \xff"); stop(events) != agent.StopEndTurn {
					t.Errorf("%q: %+v", out, last(events))
				}
				c.say(d, "again")
			}
		}
	})
}

// TestSession_EmptyReplies is case H07: nothing blank is ever sent back.
func TestSession_EmptyReplies(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		for _, empty := range []testkit.Turn{{}, {Text: " \n"}, {Reasoning: "hm"}, {Reasoning: " ", Text: " "}, {Text: "\t", Calls: []testkit.Call{execute("c1", "x")}}} {
			c := converse(t, testkit.NewProvider(t, d.turn(empty), d.turn(testkit.Turn{}), d.turn(testkit.Turn{Text: "done"})), says(" "))
			for _, prompt := range []string{"first", "second"} {
				if events := c.say(d, prompt); stop(events) != agent.StopEndTurn {
					t.Errorf("%+v: %+v", empty, last(events))
				}
			}
		}
	})
}

// TestSession_ModelsTakeTurns goes from each model to each other one: what the
// first has said, its reasoning and its ids must not make the second refuse.
func TestSession_ModelsTakeTurns(t *testing.T) {
	each(t, func(t *testing.T, first dialect) {
		for _, second := range dialects {
			thinks := testkit.Turn{Reasoning: "PRIVATE", Text: "Looking.", Calls: []testkit.Call{
				{ID: "call/" + strings.Repeat("z", 80), Name: agent.ExecuteTool, Args: `{"name":"x"}`}}}
			c := converse(t, testkit.NewProvider(t, first.turn(thinks), first.turn(testkit.Turn{Text: "done"}),
				second.turn(thinks), second.turn(testkit.Turn{Text: "done"}), first.turn(testkit.Turn{Text: "done"})), says("fine"))
			c.say(first, "one")
			c.say(second, "two")
			if second.name != first.name && strings.Count(c.lastRequest(), "PRIVATE") > 1 {
				t.Errorf("%s gets the reasoning of %s: %s", second.name, first.name, c.lastRequest())
			}
			if events := c.say(first, "three"); stop(events) != agent.StopEndTurn {
				t.Errorf("%+v", last(events))
			}
			if !strings.Contains(c.lastRequest(), "PRIVATE") {
				t.Errorf("%s does not get its own reasoning back after %s: %s", first.name, second.name, c.lastRequest())
			}
		}
	})
}

// TestSession_RefusalsLeaveItUsable are cases H11, L02 and L07: one clear error
// after a bounded number of requests, and then the next prompt works, with the
// same model or another.
func TestSession_RefusalsLeaveItUsable(t *testing.T) {
	refusals := map[agent.ErrorKind]testkit.Reply{
		agent.ErrOverflow:      testkit.JSON(413, map[string]any{"error": map[string]any{"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
		agent.ErrNoTools:       testkit.JSON(400, map[string]any{"error": map[string]any{"message": "m does not support tools"}}),
		agent.ErrCredentials:   testkit.JSON(401, map[string]any{"error": map[string]any{"message": "invalid x-api-key"}}),
		agent.ErrModelNotFound: testkit.JSON(404, map[string]any{"error": map[string]any{"message": "model: m"}}),
	}
	each(t, func(t *testing.T, d dialect) {
		for kind, refusal := range refusals {
			for _, next := range dialects {
				refuses := true
				p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply {
					if refuses {
						return refusal
					}
					return next.turn(testkit.Turn{Text: "done"})
				})
				c := converse(t, p, says("x"))
				if events := c.say(d, "first"); failure(events) != string(kind) || last(events).Error.Hint == "" {
					t.Errorf("%s: %+v", kind, last(events).Error)
				}
				if n := len(p.Requests()); n > 2 {
					t.Errorf("%s: %d requests", kind, n)
				}
				refuses = false
				if events := c.say(next, "second"); stop(events) != agent.StopEndTurn {
					t.Errorf("%s, then %s: %+v", kind, next.name, last(events))
				}
			}
		}
	})
}

// TestSession_OverflowShortensOldResults plays a window that is really full: the
// provider refuses long requests, and takes them once old results are shorter.
func TestSession_OverflowShortensOldResults(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		steps := 0
		p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
			if len(r.Body) > 60_000 {
				return testkit.JSON(400, map[string]any{"error": map[string]any{"message": "prompt is too long: 210000 tokens > 200000 maximum"}})
			}
			if steps++; steps > 8 {
				return d.turn(testkit.Turn{Text: "done"})
			}
			return d.turn(testkit.Turn{Calls: []testkit.Call{execute(fmt.Sprint("c", steps), fmt.Sprint("n", steps))}})
		})
		c := converse(t, p, says(strings.Repeat("long ", 2000)))
		events := c.say(d, "go")
		shortened := slices.ContainsFunc(events, func(e agent.Event) bool { return e.Type == agent.ContextShortened })
		if stop(events) != agent.StopEndTurn || !shortened || len(p.Requests()) != 10 {
			t.Errorf("%d requests, shortened %v, %+v", len(p.Requests()), shortened, last(events))
		}
	})
}

// TestSession_LoopForEver is case L01.
func TestSession_LoopForEver(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		n := 0
		p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply {
			n++
			return d.turn(testkit.Turn{Calls: []testkit.Call{execute("same", fmt.Sprint(n))}})
		})
		c := converse(t, p, says("x"))
		c.limits.MaxTurns = 5
		for range 2 {
			before := len(p.Requests())
			if events := c.say(d, "go"); stop(events) != agent.StopMaxTurns || len(p.Requests())-before != 5 {
				t.Errorf("%s after %d requests", stop(events), len(p.Requests())-before)
			}
		}
		c.limits.MaxTurns = 50
		q := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply {
			return d.turn(testkit.Turn{Calls: []testkit.Call{execute("same", "x")}})
		})
		c.provider = q
		if events := c.say(d, "go"); stop(events) != agent.StopLoop || len(q.Requests()) != 8 {
			t.Errorf("%s after %d requests", stop(events), len(q.Requests()))
		}
	})
}

// TestSession_RetryAfter is case L06: what the provider asks for is waited for,
// or refused at once with the time; junk means the usual growing waits.
func TestSession_RetryAfter(t *testing.T) {
	tests := map[string]struct {
		status   int
		header   string
		atLeast  time.Duration
		requests int
	}{
		"none":     {529, "", 500 * time.Millisecond, 2},
		"zero":     {429, "0", 500 * time.Millisecond, 2},
		"junk":     {429, "soon", 500 * time.Millisecond, 2},
		"negative": {529, "-5", 500 * time.Millisecond, 2},
		"seconds":  {429, "2", 2 * time.Second, 2},
		"an hour":  {429, "3600", 0, 1},
	}
	each(t, func(t *testing.T, d dialect) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				busy := testkit.JSON(tt.status, map[string]any{"error": map[string]any{"message": "busy"}})
				busy.Headers["Retry-After"] = tt.header
				p := testkit.NewProvider(t, busy, d.turn(testkit.Turn{Text: "done"}))
				end := last(converse(t, p).say(d, "go"))
				requests := p.Requests()
				switch {
				case len(requests) != tt.requests:
					t.Errorf("%d requests, %+v", len(requests), end)
				case tt.requests == 1 && (end.Error == nil || !strings.Contains(end.Error.Hint, "1h0m0s")):
					t.Errorf("%+v", end.Error)
				case tt.requests > 1 && requests[1].Time.Sub(requests[0].Time) < tt.atLeast:
					t.Errorf("asked again after %s", requests[1].Time.Sub(requests[0].Time))
				}
			})
		}
	})
}
