package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/agent"
)

// promptOf lists the pieces of a request in the order in which providers read
// them: tools, instructions, messages. marks are the lengths of the beginnings
// that may be cached.
func promptOf(t *testing.T, body []byte) (pieces []string, marks []int) {
	t.Helper()
	var request struct {
		Tools      []map[string]any
		ToolConfig struct{ Tools []map[string]any }
		System     []map[string]any
		Messages   []map[string]any
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	add := func(where string, piece map[string]any) {
		_, marked := piece["cache_control"]
		_, point := piece["cachePoint"]
		delete(piece, "cache_control")
		if !point {
			text, err := json.Marshal(piece)
			if err != nil {
				t.Fatal(err)
			}
			pieces = append(pieces, where+" "+string(text))
		}
		if marked || point {
			marks = append(marks, len(pieces))
		}
	}
	for _, tool := range append(request.Tools, request.ToolConfig.Tools...) {
		add("tool", tool)
	}
	for _, block := range request.System {
		add("system", block)
	}
	for i, m := range request.Messages {
		blocks, ok := m["content"].([]any)
		if !ok { // OpenAI's messages are pieces
			add("message", m)
			continue
		}
		for _, block := range blocks {
			add(fmt.Sprint("message ", i, m["role"]), block.(map[string]any))
		}
	}
	return pieces, marks
}

// growing is a conversation as the agent sends it: two steps with calls, a
// reply, a step that was cancelled, and a new prompt.
func growing() []agent.Request {
	var history []agent.Message
	var requests []agent.Request
	send := func(more ...agent.Message) {
		history = append(history, more...)
		requests = append(requests, agent.Request{System: "be brief", Messages: slices.Clone(history),
			Tools: []agent.ToolSpec{{Name: "f", Description: "d"}, {Name: "g", Description: "e"}}})
	}
	send(user("one"))
	send(assistant("x", agent.Text("I look."), call("a", "f", `{}`)), results(result("a", "ra", false)))
	many, answers := []agent.Block{}, []agent.Block{}
	for i := range 30 {
		many = append(many, call(fmt.Sprint("m", i), "g", `{"b":1,"a":2}`))
		answers = append(answers, result(fmt.Sprint("m", i), "r", false))
	}
	send(assistant("x", many...), results(answers...))
	send(assistant("x", agent.Text("done")), user("two"))
	send(assistant("x", call("c", "f", `{}`)), results(result("c", "cancelled", true)), user("three"))
	send(assistant("x", call("d", "f", `{}`)), results(result("d", "rd", false)))
	return requests
}

func TestCache_MarksAndStablePrefix(t *testing.T) {
	adapters := map[string]func(agent.Request) any{
		"anthropic": func(r agent.Request) any { return NewAnthropic(AnthropicOptions{ModelID: "m"}).params(r) },
		"claude": func(r agent.Request) any {
			return NewBedrock(BedrockOptions{ModelID: "us.anthropic.claude-sonnet-4-5"}).params(r)
		},
		"nova": func(r agent.Request) any {
			return NewBedrock(BedrockOptions{ModelID: "us.amazon.nova-pro-v1:0"}).params(r)
		},
		"openai": func(r agent.Request) any { return NewOpenAI(OpenAIOptions{ModelID: "m"}).params(r) },
	}
	// The ends that may be cached in the fourth request, which ends in "two".
	want := map[string][]string{
		"anthropic": {"tool ", "system ", "message 4user", "message 6user"},
		"claude":    {"tool ", "system ", "message 3assistant", "message 6user"},
		"nova":      {"system ", "message 6user"},
		"openai":    {},
	}
	for name, params := range adapters {
		t.Run(name, func(t *testing.T) {
			var before []string
			var last int
			for i, r := range growing() {
				pieces, marks := promptOf(t, encode(t, "", params(r)).Body)
				if len(marks) > 4 {
					t.Errorf("request %d has %d marks", i, len(marks))
				}
				if len(pieces) < len(before) || !slices.Equal(pieces[:len(before)], before) {
					t.Errorf("request %d does not begin as the one before:\n%q\n%q", i, pieces, before)
				}
				if name == "anthropic" && i > 0 && !slices.Contains(marks, last) {
					t.Errorf("request %d has the marks %d and not the last one before, %d", i, marks, last)
				}
				if i == 3 {
					checkMarks(t, pieces, marks, want[name])
				}
				before = pieces
				if len(marks) > 0 {
					last = marks[len(marks)-1]
				}
			}
		})
	}
}

func checkMarks(t *testing.T, pieces []string, marks []int, want []string) {
	t.Helper()
	if len(marks) != len(want) {
		t.Errorf("%d marks, want %q", len(marks), want)
		return
	}
	for i, m := range marks {
		if !strings.HasPrefix(pieces[m-1], want[i]) {
			t.Errorf("mark %d ends %s, want %s", i, pieces[m-1], want[i])
		}
	}
}

// TestCache_OpenRouter asks for a cache only where a model wants to be asked.
func TestCache_OpenRouter(t *testing.T) {
	tests := []struct {
		provider, model string
		want            bool
	}{{"openrouter", "anthropic/claude-sonnet-4.5", true}, {"openrouter", "openai/gpt-5", false}, {"", "anthropic/claude", false}}
	for _, tt := range tests {
		m := NewOpenAI(OpenAIOptions{Provider: tt.provider, ModelID: tt.model})
		body := string(encode(t, "", m.params(agent.Request{System: "s", Messages: []agent.Message{user("q")}})).Body)
		if strings.Contains(body, `"cache_control":{"type":"ephemeral"}`) != tt.want {
			t.Errorf("%s %s: %s", tt.provider, tt.model, body)
		}
	}
}
