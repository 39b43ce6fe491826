package demo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
)

func TestPlays_AreWholeAndTheirDefinitionsParse(t *testing.T) {
	for _, p := range plays {
		d, err := capability.ParseDefinition(p.definition)
		if err != nil || d.Name != p.name {
			t.Errorf("%q: %v, name %q", p.prompt, err, d.Name)
		}
		if strings.Contains(p.prompt, `"`) || len(p.code) == 0 {
			t.Errorf("%q cannot be listed in double quotes, or has no code", p.prompt)
		}
	}
}

// history is a turn in which the demo's calls got these results.
func history(prompt string, results ...agent.Block) []agent.Message {
	messages := []agent.Message{{Role: agent.RoleUser, Blocks: []agent.Block{agent.Text(prompt)}}}
	for _, r := range results {
		_, call := next(messages)
		if call == nil {
			break
		}
		call.ID = "c" + string(rune('a'+len(messages)))
		r.Type, r.CallID = agent.BlockResult, call.ID
		messages = append(messages,
			agent.Message{Role: agent.RoleAssistant, Blocks: []agent.Block{{Type: agent.BlockCall, Call: call}}},
			agent.Message{Role: agent.RoleTool, Blocks: []agent.Block{r}})
	}
	return messages
}

func TestNext_AnswersFromTheOutput(t *testing.T) {
	empty := agent.Block{Text: `{"capabilities":[],"total":0}`}
	there := agent.Block{Text: `{"capabilities":[{"name":"count_words"}],"total":1}`}
	ok := agent.Block{Text: `{}`}
	for name, c := range map[string]struct {
		results []agent.Block
		call    string
		text    string
	}{
		"first it lists":             {nil, agent.ListTool, ""},
		"none: it registers":         {[]agent.Block{empty}, agent.RegisterTool, ""},
		"there: it executes":         {[]agent.Block{there}, agent.ExecuteTool, ""},
		"registered: it executes":    {[]agent.Block{empty, ok}, agent.ExecuteTool, ""},
		"refused: it says so":        {[]agent.Block{empty, {Text: "no way", IsError: true}}, "", "no way"},
		"failed: it says so":         {[]agent.Block{there, {Text: "boom", IsError: true}}, "", "boom"},
		"output":                     {[]agent.Block{there, {Text: `{"total":3,"files":[{"file":"a.md","words":3}]}`}}, "", "1 text file with 3 words"},
		"output of another shape":    {[]agent.Block{there, {Text: "as I say"}}, "", "as I say"},
		"a listing that is no JSON":  {[]agent.Block{{Text: "oops", IsError: true}}, agent.RegisterTool, ""},
		"output with a wrong number": {[]agent.Block{there, {Text: `{"total":"x"}`}}, "", `{"total":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			text, call := next(history("how many WORDS are in my text files ", c.results...))
			got := ""
			if call != nil {
				got = call.Name
				if !json.Valid(call.Input) {
					t.Errorf("input %s", call.Input)
				}
			}
			if got != c.call || !strings.Contains(text, c.text) {
				t.Errorf("call %q, text %q", got, text)
			}
			if text != "" && !strings.Contains(text, "demo") {
				t.Errorf("%q does not say that it is the demo", text)
			}
		})
	}
}

func TestNext_MendsWhatTheGateRefuses(t *testing.T) {
	refused := agent.Block{Text: "TS2365", IsError: true}
	messages := history("What did I spend per category?", agent.Block{Text: `{"capabilities":[]}`}, refused)
	_, call := next(messages)
	if call == nil || call.Name != agent.RegisterTool || !strings.Contains(string(call.Input), "Map\\u003cstring, number") {
		t.Errorf("got %+v", call)
	}
}

func TestNext_UnknownPromptListsThePrompts(t *testing.T) {
	text, call := next(history("do my taxes"))
	if call != nil {
		t.Error("it calls a tool")
	}
	for _, p := range Prompts() {
		if !strings.Contains(text, `"`+p+`"`) {
			t.Errorf("no %q in %q", p, text)
		}
	}
}
