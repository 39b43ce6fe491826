// Package demo is a model without a provider: it plays a few scripted prompts,
// so that everything can be tried without a key. Only its words are scripted.
// It lists, registers and executes through the real loop, gate and sandbox, and
// it answers from what the capability returned.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
)

// Name is what the model is called wherever it appears.
const Name = "demo"

// Model plays the scripted prompts. It keeps no state: what comes next follows
// from the history alone.
type Model struct{}

// Name implements [agent.Model].
func (Model) Name() string { return Name }

// Prompts lists what the demo can play.
func Prompts() []string {
	var list []string
	for _, p := range plays {
		list = append(list, p.prompt)
	}
	return list
}

// Stream implements [agent.Model].
func (Model) Stream(ctx context.Context, req agent.Request) iter.Seq2[agent.Part, error] {
	return func(yield func(agent.Part, error) bool) {
		text, call := next(req.Messages)
		if ctx.Err() != nil {
			yield(agent.Part{}, ctx.Err())
			return
		}
		for _, word := range strings.SplitAfter(text, " ") {
			if word != "" && !yield(agent.Part{Text: word}, nil) {
				return
			}
		}
		finish := agent.FinishStop
		if call != nil {
			finish = agent.FinishCalls
			if !yield(agent.Part{Call: call}, nil) {
				return
			}
		}
		yield(agent.Part{Finish: finish}, nil)
	}
}

// move is one thing that was done in the current turn.
type move struct {
	call   agent.Call
	result agent.Block
}

// next decides what the demo says or calls after a history.
func next(messages []agent.Message) (string, *agent.Call) {
	prompt, moves := currentTurn(messages)
	p, ok := find(prompt)
	if !ok {
		return unknownPrompt(), nil
	}
	if len(moves) == 0 {
		return "", newCall(agent.ListTool, map[string]any{"query": p.query})
	}
	last := moves[len(moves)-1]
	switch last.call.Name {
	case agent.ListTool:
		if listed(last.result.Text, p.name) {
			return "", p.execute()
		}
		return "", p.register(0)
	case agent.RegisterTool:
		attempts := countCalls(moves, agent.RegisterTool)
		switch {
		case !last.result.IsError:
			return "", p.execute()
		case attempts < len(p.code):
			return "", p.register(attempts)
		}
		return sign("The capability could not be registered: " + last.result.Text), nil
	}
	if last.result.IsError {
		return sign(fmt.Sprintf("Running %s failed. %s", p.name, last.result.Text)), nil
	}
	return sign(p.answer(last.result.Text)), nil
}

// currentTurn returns the last thing the user said and what was done since.
func currentTurn(messages []agent.Message) (prompt string, moves []move) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			switch {
			case m.Role == agent.RoleUser && b.Type == agent.BlockText:
				prompt, moves = b.Text, nil
			case b.Type == agent.BlockCall:
				moves = append(moves, move{call: *b.Call})
			case b.Type == agent.BlockResult:
				for i := range moves {
					if moves[i].call.ID == b.CallID {
						moves[i].result = b
					}
				}
			}
		}
	}
	return prompt, moves
}

func countCalls(moves []move, tool string) int {
	n := 0
	for _, m := range moves {
		if m.call.Name == tool {
			n++
		}
	}
	return n
}

// listed reports whether a listing names a capability.
func listed(listing, name string) bool {
	var l struct {
		Capabilities []struct {
			Name string `json:"name"`
		} `json:"capabilities"`
	}
	if json.Unmarshal([]byte(listing), &l) != nil {
		return false
	}
	for _, c := range l.Capabilities {
		if c.Name == name {
			return true
		}
	}
	return false
}

func newCall(tool string, input any) *agent.Call {
	raw, err := json.Marshal(input)
	if err != nil {
		return &agent.Call{Name: tool, Malformed: err.Error()}
	}
	return &agent.Call{Name: tool, Input: raw}
}

func unknownPrompt() string {
	var b strings.Builder
	b.WriteString("I am the demo model and play only these prompts:\n")
	for _, p := range Prompts() {
		fmt.Fprintf(&b, "- %q\n", p)
	}
	b.WriteString("\nFor anything else choose a real model, in the app in Settings; in a terminal `tendril doctor` says what is needed.")
	return b.String()
}

// sign says who speaks.
func sign(text string) string {
	return text + "\n\n(This is the demo model: its words are scripted; the capability, the gate and the run were real.)"
}
