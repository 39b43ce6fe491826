package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestRun_RandomFaultsKeepHistoryValid plays sessions whose model and tools
// misbehave at random, are cancelled at random and left at random. Whatever
// happens, each turn has one terminal event, and the history, also after a crash
// at any event, is one that providers accept.
func TestRun_RandomFaultsKeepHistoryValid(t *testing.T) { playRandomly(t, 300) }

func playRandomly(t *testing.T, sessions int) {
	t.Helper()
	for seed := range sessions {
		synctest.Test(t, func(t *testing.T) {
			r := &randomWorld{Rand: rand.New(rand.NewPCG(uint64(seed), 7))}
			s := newSession()
			a := newAgent(t, &fakeModel{replies: []func(context.Context, func(Part) bool) error{r.reply}}, Limits{MaxTurns: 6, Timeout: time.Hour}, executeTool(r.call))
			for range 1 + r.IntN(6) {
				r.turn(t, a, s)
			}
			checkHistory(t, s)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// randomWorld is a model and a tool that do anything.
type randomWorld struct{ *rand.Rand }

// turn runs one turn, which may be cancelled or left at any event.
func (r *randomWorld) turn(t *testing.T, a *Agent, s Session) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cancelAt, leaveAt := r.at(0.3), r.at(0.2)
	n, terminal := 0, 0
	for e := range a.Run(ctx, s, []Block{Text("go")}) {
		if e.Type == TurnFinished {
			terminal++
		} else if terminal > 0 {
			t.Errorf("%s after the terminal event", e.Type)
		}
		if n++; n == cancelAt {
			cancel()
		}
		if n == leaveAt {
			return
		}
	}
	if terminal != 1 {
		t.Errorf("%d terminal events", terminal)
	}
}

// at is a small number of events with some probability, else never.
func (r *randomWorld) at(probability float64) int {
	if r.Float64() < probability {
		return 1 + r.IntN(12)
	}
	return -1
}

func (r *randomWorld) reply(ctx context.Context, yield func(Part) bool) error {
	for range r.IntN(5) {
		var p Part
		switch r.IntN(7) {
		case 0:
			p.Text = []string{"", " ", "\n", "text"}[r.IntN(4)]
		case 1:
			p.Reasoning = &Block{Text: "hm", Signature: []string{"", "s"}[r.IntN(2)], Redacted: r.IntN(3) == 0}
		case 2:
			p.Usage = &Usage{Input: 1}
		case 3:
			return r.failure()
		default:
			p.Call = r.randomCall()
		}
		if !yield(p) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	finish := []Finish{FinishStop, FinishCalls, FinishCalls, FinishMaxTokens, FinishRefusal, ""}[r.IntN(6)]
	yield(Part{Finish: finish})
	return nil
}

func (r *randomWorld) failure() error {
	kinds := []ErrorKind{ErrRateLimit, ErrOverloaded, ErrMalformed, ErrCredentials, ErrOverflow}
	if r.IntN(5) == 0 {
		return errors.New("something else")
	}
	return &ModelError{Kind: kinds[r.IntN(len(kinds))], Message: "no"}
}

func (r *randomWorld) randomCall() *Call {
	c := &Call{
		ID:    []string{"", "same", fmt.Sprint("id", r.IntN(4))}[r.IntN(3)],
		Name:  []string{ExecuteTool, ExecuteTool, "nobody", ""}[r.IntN(4)],
		Input: json.RawMessage([]string{`{"name":"x"}`, `{"name":"y"}`, `{}`, `{"name":1}`, ``}[r.IntN(5)]),
	}
	if r.IntN(6) == 0 {
		c.Input, c.Malformed = nil, `{"na`
	}
	return c
}

func (r *randomWorld) call(ctx context.Context, _ json.RawMessage, report func(Progress)) Result {
	switch r.IntN(6) {
	case 0:
		panic("boom")
	case 1:
		<-ctx.Done()
		return Result{Status: Failed, Text: "cancelled"}
	case 2:
		return Result{Status: Failed}
	}
	report(Progress{Line: "working"})
	return Result{Status: Completed, Text: []string{"", "  ", "done"}[r.IntN(3)]}
}
