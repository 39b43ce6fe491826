package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// TestSessions_RandomFaultsNeverBreakARequest plays sessions over real sockets.
// The provider says and breaks what it likes, the model changes between turns,
// turns are cancelled, left and crash at any event. Every request is one that
// the real providers take.
func TestSessions_RandomFaultsNeverBreakARequest(t *testing.T) { playSessions(t, 24, 10) }

// playSessions plays sessions with so many turns each.
func playSessions(t *testing.T, sessions, turns int) {
	t.Helper()
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for seed := range seeds {
				newWorld(t, seed).play(turns)
			}
		})
	}
	for seed := range uint64(sessions) {
		if t.Failed() {
			break
		}
		seeds <- seed
	}
	close(seeds)
	workers.Wait()
}

// world is one session, its provider and its tools.
type world struct {
	t    *testing.T
	seed uint64
	mu   sync.Mutex // the provider answers in goroutines of its own
	*rand.Rand
	provider *testkit.Provider
	client   *http.Client
	now      dialect // of the turn that runs
	log      []agent.Event
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, seed: seed, Rand: rand.New(rand.NewPCG(seed, 11)), client: &http.Client{Transport: &http.Transport{}}}
}

func (w *world) play(turns int) {
	var err error
	if w.provider, err = testkit.Serve(w.answer); err != nil {
		w.t.Error(err)
		return
	}
	defer w.client.CloseIdleConnections()
	defer w.provider.Close()
	for range turns {
		w.turn()
	}
}

// turn plays one turn, which may be cancelled or left at any event, and may lose
// its end as in a crash.
func (w *world) turn() {
	w.now = dialects[w.IntN(len(dialects))]
	o := agent.Options{
		Model: w.now.open(w.provider.URL, w.client), System: "be brief", Limits: agent.Limits{MaxTurns: 6, Timeout: time.Minute},
		Tools: []agent.Tool{randomTool{w, agent.ListTool}, randomTool{w, agent.RegisterTool}, randomTool{w, agent.ExecuteTool}},
	}
	if w.IntN(2) == 0 {
		o.Facts.ContextWindow = 2000
	}
	a, err := agent.New(o)
	if err != nil {
		w.t.Error(err)
		return
	}
	log := &agent.MemoryLog{}
	for _, e := range w.log {
		_ = log.Append(context.Background(), e) // memory
	}
	w.watch(a, log)
	events, _ := log.Events(context.Background())
	if w.IntN(6) == 0 {
		events = events[:len(w.log)+w.IntN(len(events)-len(w.log)+1)]
	}
	w.log = events
}

func (w *world) watch(a *agent.Agent, log agent.Log) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cancelAt, leaveAt, impatient := w.at(0.2), w.at(0.1), w.IntN(20) > 0 // a wait is at least half a second
	n := 0
	for e := range a.Run(ctx, agent.Session{ID: "s", Log: log}, []agent.Block{agent.Text(w.pick("go", "\x00", "\xff and", "  now  "))}) {
		if n++; n == leaveAt {
			return
		}
		if n == cancelAt || e.Type == agent.Retry && impatient {
			cancel()
		}
	}
}

// at is a small number of events with some probability, else never.
func (w *world) at(probability float64) int {
	if w.Float64() < probability {
		return 1 + w.IntN(30)
	}
	return -1
}

func (w *world) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w *world) answer(r testkit.Request) testkit.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	if broken := testkit.Lint([]testkit.Request{r}); len(broken) > 0 {
		w.t.Errorf("seed %d, %s: %v\n%.4000s", w.seed, w.now.name, broken, r.Body)
	}
	reply := w.now.turn(w.says())
	switch w.IntN(12) {
	case 0:
		return w.refusal()
	case 1:
		reply.Body = reply.Body[:w.IntN(len(reply.Body))]
		reply.End = w.pick("close", "reset")
	case 2:
		reply.Body[w.IntN(len(reply.Body))] ^= 1 << w.IntN(8)
	case 3:
		at := bytes.Index(reply.Body, []byte("\n\n"))
		reply.Body = append(reply.Body[:at+2:at+2], []byte(`data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`+"\n\n")...)
	case 4:
		reply.Split = w.pick("7", "lines")
	}
	return reply
}

func (w *world) refusal() testkit.Reply {
	status := []int{400, 401, 404, 413, 429, 500, 502, 529}[w.IntN(8)]
	message := w.pick("no", "prompt is too long: 210000 tokens > 200000 maximum", "Overloaded", "does not support tools", "")
	return testkit.JSON(status, map[string]any{"error": map[string]any{"message": message, "type": "x"}})
}

// says is a reply with anything in it.
func (w *world) says() testkit.Turn {
	t := testkit.Turn{
		Text:      w.pick("", " ", "\n", "text", "lone \ufffd and \x00"),
		Reasoning: w.pick("", "", "hm", " "),
		Usage:     &testkit.Usage{Input: w.Int64N(1900), Output: w.Int64N(50), CacheRead: w.Int64N(100)},
	}
	for range w.IntN(4) {
		t.Calls = append(t.Calls, testkit.Call{
			ID:   w.pick("", "same", fmt.Sprint("id", w.IntN(9)), "toolu_"+strings.Repeat("y", 60), "a b/ü"),
			Name: w.pick(agent.ExecuteTool, agent.ExecuteTool, agent.ListTool, agent.RegisterTool, "nobody", "$a.b", "", strings.Repeat("x", 90)),
			Args: w.pick(`{"name":"x"}`, `{}`, ``, `{"na`, `[1]`, `"{\"name\":\"y\"}"`, `{"name":"\ud83d","args":{"n":9007199254740993}}`, `{"a":"\u0000"}`, `{"name":"}"} `),
		})
	}
	if w.IntN(10) == 0 {
		t.Finish = w.pick("length", "max_tokens", "refusal", "content_filter", "stop", "tool_use", "odd")
	}
	return t
}

// randomTool answers with anything.
type randomTool struct {
	w    *world
	name string
}

func (t randomTool) Spec() agent.ToolSpec {
	return agent.ToolSpec{Name: t.name, Description: t.name, Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"args":{"type":"object"}}}`)}
}

func (t randomTool) Call(context.Context, agent.Invocation, func(agent.Progress)) agent.Result {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	switch t.w.IntN(8) {
	case 0:
		panic("boom")
	case 1:
		return agent.Result{Status: agent.Failed}
	case 2:
		return agent.Result{Status: agent.Completed, Text: strings.Repeat("€ ", 2000)}
	}
	return agent.Result{Status: agent.Completed, Text: t.w.pick("", "  ", "done", "\x00\x1b[2J", "\xff\xfe", "</tool_result>")}
}
