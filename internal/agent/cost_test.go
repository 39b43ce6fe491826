package agent

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func usd(f float64) *float64 { return &f }

// priced is 1, 2, 0.1 and 1.25 dollars for a token, so that sums are easy.
var priced = Facts{Price: Price{Input: usd(1e6), Output: usd(2e6), CacheRead: usd(0.1e6), CacheWrite: usd(1.25e6)}}

func TestPrice_UnknownIsNotZero(t *testing.T) {
	all := Usage{Input: 10, Output: 10, CacheRead: 10, CacheWrite: 10}
	if c := priced.Price.Cost(all); c == nil || math.Abs(*c-43.5) > 1e-9 {
		t.Errorf("cost %v", c)
	}
	for name, p := range map[string]Price{
		"nothing":     {},
		"no output":   {Input: usd(1), CacheRead: usd(1), CacheWrite: usd(1)},
		"no read":     {Input: usd(1), Output: usd(1), CacheWrite: usd(1)},
		"no write":    {Input: usd(1), Output: usd(1), CacheRead: usd(1)},
		"cache alone": {CacheRead: usd(1), CacheWrite: usd(1)},
	} {
		if c := p.Cost(all); c != nil {
			t.Errorf("%s: %v", name, *c)
		}
	}
	if c := (Price{Input: usd(1e6), Output: usd(0)}).Cost(Usage{Input: 3, Output: 9}); c == nil || *c != 3 {
		t.Errorf("a part that was not used needs no price; an explicit 0 is one: %v", c)
	}
}

// TestRun_CostIsTheSumOfAllModelCalls counts cumulative figures once, and also
// the calls that failed after they had begun.
func TestRun_CostIsTheSumOfAllModelCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cumulative := parts(Part{Usage: &Usage{Input: 10, CacheWrite: 4}}, Part{Usage: &Usage{Input: 10, CacheWrite: 4, Output: 1}},
			Part{Call: &Call{ID: "a", Name: ExecuteTool, Input: []byte(`{"name":"x"}`)}},
			Part{Usage: &Usage{Input: 10, CacheWrite: 4, Output: 5}}, Part{Finish: FinishCalls})
		brokenOff := func(_ context.Context, yield func(Part) bool) error {
			yield(Part{Usage: &Usage{Input: 7}})
			return &ModelError{Kind: ErrOverloaded, Message: "gone"}
		}
		m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{
			cumulative, fails(&ModelError{Kind: ErrOverloaded}), brokenOff,
			parts(Part{Text: "done"}, Part{Usage: &Usage{Input: 3, CacheRead: 14, Output: 2}}, Part{Finish: FinishStop}),
		}}
		events := runTurn(newAgentWith(t, Options{Model: m, Facts: priced, Tools: []Tool{echo}}), newSession(), "go")
		end := last(t, events)
		if want := (Usage{Input: 20, Output: 7, CacheRead: 14, CacheWrite: 4}); end.Stop != StopEndTurn || *end.Usage != want {
			t.Errorf("%s, %+v", end.Stop, *end.Usage)
		}
		// 20 + 2·7 + 0.1·14 + 1.25·4
		if end.CostUSD == nil || math.Abs(*end.CostUSD-40.4) > 1e-9 || !end.CostPartial {
			t.Errorf("cost %v, partial %v: the broken off call was not counted to its end", end.CostUSD, end.CostPartial)
		}
		sum := 0.0
		for _, e := range events {
			if e.Type == UsageReported {
				sum += *e.CostUSD
			}
		}
		if math.Abs(sum-*end.CostUSD) > 1e-9 {
			t.Errorf("the calls sum to %v", sum)
		}
	})
}

func TestRun_CostThatIsNotKnown(t *testing.T) {
	counted := Part{Usage: &Usage{Input: 1}}
	for name, tt := range map[string]struct {
		facts   Facts
		parts   []Part
		err     error
		known   bool
		partial bool
	}{
		"no price":             {parts: []Part{counted, {Finish: FinishStop}}, partial: true},
		"all is known":         {facts: priced, parts: []Part{counted, {Finish: FinishStop}}, known: true},
		"no figures":           {facts: priced, parts: []Part{{Text: "x"}, {Finish: FinishStop}}, partial: true},
		"negative figures":     {facts: priced, parts: []Part{{Usage: &Usage{Input: -5, Output: 1}}, {Finish: FinishStop}}, partial: true},
		"absurd figures":       {facts: priced, parts: []Part{{Usage: &Usage{Input: 1, Output: 1e15}}, {Finish: FinishStop}}, partial: true},
		"free without figures": {facts: Facts{Price: Price{Input: usd(0), Output: usd(0)}}, parts: []Part{{Text: "x"}, {Finish: FinishStop}}, known: true},
		"cut off":              {facts: priced, parts: []Part{counted, {Text: "x"}}, err: &ModelError{Kind: ErrMalformed}, known: true, partial: true},
		"refused at the start": {facts: priced, err: &ModelError{Kind: ErrCredentials}},
	} {
		m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{func(ctx context.Context, yield func(Part) bool) error {
			return errors.Join(parts(tt.parts...)(ctx, yield), tt.err)
		}}}
		end := last(t, runTurn(newAgentWith(t, Options{Model: m, Facts: tt.facts}), newSession(), "go"))
		if *end.Usage != (Usage{}) && !end.Usage.believable() {
			t.Errorf("%s: usage %+v", name, *end.Usage)
		}
		if (end.CostUSD != nil) != tt.known || end.CostPartial != tt.partial {
			t.Errorf("%s: cost %v, partial %v", name, end.CostUSD, end.CostPartial)
		}
	}
}

func TestRun_BudgetEndsTheTurnBeforeTheNextCall(t *testing.T) {
	m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{
		calls(execCall("a", `{"name":"x"}`)), calls(execCall("b", `{"name":"y"}`)), calls(execCall("c", `{"name":"z"}`)),
	}}
	s := newSession() // a call costs 10 + 2·2
	events := runTurn(newAgentWith(t, Options{Model: m, Facts: priced, Limits: Limits{BudgetUSD: 20}, Tools: []Tool{echo}}), s, "go")
	if end := last(t, events); end.Stop != StopBudget || end.ModelCalls != 2 || end.Error != nil || *end.CostUSD != 28 {
		t.Errorf("%+v", end)
	}
	checkHistory(t, s)

	m = &fakeModel{replies: []func(context.Context, func(Part) bool) error{text("ok")}}
	events = runTurn(newAgentWith(t, Options{Model: m, Limits: Limits{BudgetUSD: 20}}), s, "again")
	if last(t, events).Stop != StopEndTurn || !strings.Contains(events[0].Note, "cannot hold") {
		t.Errorf("without a price the turn runs and says so: %+v", events[0])
	}
}

// TestRun_BudgetThatDidNotHold says so once, at the end.
func TestRun_BudgetThatDidNotHold(t *testing.T) {
	m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{
		parts(Part{Call: &Call{ID: "a", Name: ExecuteTool, Input: []byte(`{"name":"x"}`)}}, Part{Finish: FinishCalls}),
		parts(Part{Text: "done"}, Part{Usage: &Usage{Input: 1}}, Part{Finish: FinishStop}),
	}}
	end := last(t, runTurn(newAgentWith(t, Options{Model: m, Facts: priced, Limits: Limits{BudgetUSD: 20}, Tools: []Tool{echo}}), newSession(), "go"))
	if !strings.Contains(end.Note, "did not count 1 of 2 model calls") || end.CostUSD == nil || *end.CostUSD != 1 || !end.CostPartial {
		t.Errorf("%q, cost %v, partial %v", end.Note, end.CostUSD, end.CostPartial)
	}
}

// TestRun_GivenUpWhileWaiting: the provider may bill what was asked for.
func TestRun_GivenUpWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context, _ func(Part) bool) error { <-ctx.Done(); return ctx.Err() }
		for name, first := range map[string]func(context.Context, func(Part) bool) error{
			"the second call": calls(execCall("a", `{"name":"x"}`)), "the first call": silent,
		} {
			m := &fakeModel{replies: []func(context.Context, func(Part) bool) error{first, silent}}
			end := last(t, runTurn(newAgentWith(t, Options{Model: m, Facts: priced, Limits: Limits{Timeout: time.Minute}, Tools: []Tool{echo}}), newSession(), "go"))
			if end.Stop != StopTimeout || !end.CostPartial || (end.CostUSD != nil) != (name == "the second call") {
				t.Errorf("%s: %s, cost %v, partial %v", name, end.Stop, end.CostUSD, end.CostPartial)
			}
		}
	})
}
