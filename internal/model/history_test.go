package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// bodies encodes req as each provider gets it; Bedrock as a model gets it that
// it knows nothing of, and as one that it knows all of.
func bodies(tb testing.TB, req agent.Request) []testkit.Request {
	tb.Helper()
	const converse = "/model/m/converse-stream"
	return []testkit.Request{
		encode(tb, "/v1/messages", NewAnthropic(AnthropicOptions{ModelID: "m"}).params(req)),
		encode(tb, "/v1/chat/completions", NewOpenAI(OpenAIOptions{ModelID: "m"}).params(req)),
		encode(tb, converse, NewBedrock(BedrockOptions{ModelID: "m"}).params(req)),
		encode(tb, converse, NewBedrock(BedrockOptions{ModelID: "us.anthropic.claude-sonnet-4-5"}).params(req)),
	}
}

func encode(tb testing.TB, path string, params any) testkit.Request {
	tb.Helper()
	body, err := json.Marshal(params)
	if err != nil {
		tb.Fatal(err)
	}
	return testkit.Request{Path: path, Body: body}
}

func user(text string) agent.Message {
	return agent.Message{Role: agent.RoleUser, Blocks: []agent.Block{agent.Text(text)}}
}

func assistant(model string, blocks ...agent.Block) agent.Message {
	return agent.Message{Role: agent.RoleAssistant, Model: model, Blocks: blocks}
}

func results(blocks ...agent.Block) agent.Message {
	return agent.Message{Role: agent.RoleTool, Blocks: blocks}
}

func call(id, name, input string) agent.Block {
	return agent.Block{Type: agent.BlockCall, Call: &agent.Call{ID: id, Name: name, Input: json.RawMessage(input)}}
}

func result(id, text string, isError bool) agent.Block {
	return agent.Block{Type: agent.BlockResult, CallID: id, Text: text, IsError: isError}
}

// TestConversation_Wire holds histories and what the providers get of them.
// Cache marks are left out: see cache_test.go.
func TestConversation_Wire(t *testing.T) {
	tests := []struct {
		name                       string
		messages                   []agent.Message
		anthropic, openAI, bedrock string
	}{
		{"results in call order, directly after the calls",
			[]agent.Message{user("q"), assistant("x", call("a", "f", `{"n":1}`), call("b", "g", `{}`)), results(result("b", "two", true), result("a", "one", false)), user("and?")},
			`[{"content":[{"text":"q","type":"text"}],"role":"user"},{"content":[{"id":"a","input":{"n":1},"name":"f","type":"tool_use"},{"id":"b","input":{},"name":"g","type":"tool_use"}],"role":"assistant"},{"content":[{"tool_use_id":"a","is_error":false,"content":[{"text":"one","type":"text"}],"type":"tool_result"},{"tool_use_id":"b","is_error":true,"content":[{"text":"two","type":"text"}],"type":"tool_result"},{"text":"and?","type":"text"}],"role":"user"}]`,
			`[{"content":"q","role":"user"},{"tool_calls":[{"id":"a","function":{"arguments":"{\"n\":1}","name":"f"},"type":"function"},{"id":"b","function":{"arguments":"{}","name":"g"},"type":"function"}],"role":"assistant"},{"content":"one","tool_call_id":"a","role":"tool"},{"content":"two","tool_call_id":"b","role":"tool"},{"content":"and?","role":"user"}]`,
			`[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{"n":1}}},{"toolUse":{"toolUseId":"b","name":"g","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"one"}]}},{"toolResult":{"toolUseId":"b","content":[{"text":"two"}]}}]},{"role":"assistant","content":[{"text":"(results received)"}]},{"role":"user","content":[{"text":"and?"}]}]`},
		{"missing, stray, double and blank results",
			[]agent.Message{user("q"), assistant("x", call("a", "f", `{}`), call("b", "f", `{}`), call("c", "f", `{}`)), results(result("z", "stray", false), result("b", " \n", false), result("b", "again", false), result("c", "", true))},
			`[{"content":[{"text":"q","type":"text"}],"role":"user"},{"content":[{"id":"a","input":{},"name":"f","type":"tool_use"},{"id":"b","input":{},"name":"f","type":"tool_use"},{"id":"c","input":{},"name":"f","type":"tool_use"}],"role":"assistant"},{"content":[{"tool_use_id":"a","is_error":true,"content":[{"text":"(no result: the call was interrupted)","type":"text"}],"type":"tool_result"},{"tool_use_id":"b","is_error":false,"content":[{"text":"(no output)","type":"text"}],"type":"tool_result"},{"tool_use_id":"c","is_error":true,"content":[{"text":"(failed without output)","type":"text"}],"type":"tool_result"}],"role":"user"}]`,
			`[{"content":"q","role":"user"},{"tool_calls":[{"id":"a","function":{"arguments":"{}","name":"f"},"type":"function"},{"id":"b","function":{"arguments":"{}","name":"f"},"type":"function"},{"id":"c","function":{"arguments":"{}","name":"f"},"type":"function"}],"role":"assistant"},{"content":"(no result: the call was interrupted)","tool_call_id":"a","role":"tool"},{"content":"(no output)","tool_call_id":"b","role":"tool"},{"content":"(failed without output)","tool_call_id":"c","role":"tool"}]`,
			`[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}},{"toolUse":{"toolUseId":"b","name":"f","input":{}}},{"toolUse":{"toolUseId":"c","name":"f","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"(no result: the call was interrupted)"}]}},{"toolResult":{"toolUseId":"b","content":[{"text":"(no output)"}]}},{"toolResult":{"toolUseId":"c","content":[{"text":"(failed without output)"}]}}]}]`},
		{"blanks, empty replies and neighbours of one role",
			[]agent.Message{user(" "), user("a"), assistant("x", agent.Text("\n")), user("b"), assistant("x", agent.Text("c")), assistant("x"), assistant("x", agent.Text("d"))},
			`[{"content":[{"text":"a","type":"text"},{"text":"b","type":"text"}],"role":"user"},{"content":[{"text":"c","type":"text"},{"text":"d","type":"text"}],"role":"assistant"}]`,
			`[{"content":"a\n\nb","role":"user"},{"content":"cd","role":"assistant"}]`,
			`[{"role":"user","content":[{"text":"a"},{"text":"b"}]},{"role":"assistant","content":[{"text":"c"},{"text":"d"}]}]`},
		{"a history that starts in the middle",
			[]agent.Message{results(result("z", "stray", false)), assistant("x", agent.Text("a"))},
			`[{"content":[{"text":"(continue)","type":"text"}],"role":"user"},{"content":[{"text":"a","type":"text"}],"role":"assistant"}]`,
			`[{"content":"(continue)","role":"user"},{"content":"a","role":"assistant"}]`,
			`[{"role":"user","content":[{"text":"(continue)"}]},{"role":"assistant","content":[{"text":"a"}]}]`},
		{"names, ids, digits and hostile text",
			[]agent.Message{user("a\x00\xff"), assistant("x", call("i:1", "a.b$", `{"n":9007199254740993,"f":1.10,"s":"\ud83d\u0000"}`), call("i.1", "", `[1]`), call("", strings.Repeat("x", 90), ``)), results(result("i:1", "r1", false), result("i.1", "r2", false), result("", "r3", false))},
			`[{"content":[{"text":"a��","type":"text"}],"role":"user"},{"content":[{"id":"i_1","input":{"n":9007199254740993,"f":1.10,"s":"\ufffd\ufffd"},"name":"a_b_","type":"tool_use"},{"id":"call_1","input":{},"name":"unnamed","type":"tool_use"},{"id":"call_2","input":{},"name":"` + strings.Repeat("x", 64) + `","type":"tool_use"}],"role":"assistant"},{"content":[{"tool_use_id":"i_1","is_error":false,"content":[{"text":"r1","type":"text"}],"type":"tool_result"},{"tool_use_id":"call_1","is_error":false,"content":[{"text":"r2","type":"text"}],"type":"tool_result"},{"tool_use_id":"call_2","is_error":false,"content":[{"text":"r3","type":"text"}],"type":"tool_result"}],"role":"user"}]`,
			`[{"content":"a��","role":"user"},{"tool_calls":[{"id":"i_1","function":{"arguments":"{\"n\":9007199254740993,\"f\":1.10,\"s\":\"\\ufffd\\ufffd\"}","name":"a_b_"},"type":"function"},{"id":"call_1","function":{"arguments":"{}","name":"unnamed"},"type":"function"},{"id":"call_2","function":{"arguments":"{}","name":"` + strings.Repeat("x", 64) + `"},"type":"function"}],"role":"assistant"},{"content":"r1","tool_call_id":"i_1","role":"tool"},{"content":"r2","tool_call_id":"call_1","role":"tool"},{"content":"r3","tool_call_id":"call_2","role":"tool"}]`,
			`[{"role":"user","content":[{"text":"a��"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"i_1","name":"a_b_","input":{"n":9007199254740993,"f":1.10,"s":"\ufffd\ufffd"}}},{"toolUse":{"toolUseId":"call_1","name":"unnamed","input":{}}},{"toolUse":{"toolUseId":"call_2","name":"` + strings.Repeat("x", 64) + `","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"i_1","content":[{"text":"r1"}]}},{"toolResult":{"toolUseId":"call_1","content":[{"text":"r2"}]}},{"toolResult":{"toolUseId":"call_2","content":[{"text":"r3"}]}}]}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			requests := bodies(t, agent.Request{Messages: tt.messages})
			for i, want := range []string{tt.anthropic, tt.openAI, tt.bedrock} {
				var body struct{ Messages json.RawMessage }
				if err := json.Unmarshal(requests[i].Body, &body); err != nil {
					t.Fatal(err)
				}
				if got := strings.ReplaceAll(string(body.Messages), `"cache_control":{"type":"ephemeral"},`, ""); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			}
			if broken := testkit.Lint(requests); len(broken) > 0 {
				t.Error(broken)
			}
		})
	}
}

// TestConversation_KeepsOwnIDs on servers whose ids carry meaning.
func TestConversation_KeepsOwnIDs(t *testing.T) {
	id := "call_1__thought__" + strings.Repeat("a+/=", 100)
	messages := []agent.Message{user("q"), assistant("openai/m", call(id, "f", `{}`)), results(result(id, "r", false))}
	requests := bodies(t, agent.Request{Messages: messages})
	if strings.Count(string(requests[1].Body), `"`+id+`"`) != 2 {
		t.Errorf("not kept: %s", requests[1].Body)
	}
	if strings.Contains(string(requests[0].Body), "+/=") {
		t.Errorf("illegal for Anthropic: %s", requests[0].Body)
	}
}

func TestRequest_Tools(t *testing.T) {
	schemas := []string{``, `null`, `[]`, `{}`, `{"type":"string"}`, `{"properties":null,"required":null}`, `{"properties":[],"required":"x"}`,
		`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"required":["n"],"additionalProperties":false}`}
	for _, schema := range schemas {
		requests := bodies(t, agent.Request{System: "s", Tools: []agent.ToolSpec{{Name: "f", Description: "d", Schema: json.RawMessage(schema)}}, Messages: []agent.Message{user("q")}})
		if broken := testkit.Lint(requests); len(broken) > 0 {
			t.Errorf("%s: %v", schema, broken)
		}
		for _, r := range requests {
			body := string(r.Body)
			if !strings.Contains(body, `"required":[`) || !strings.Contains(body, `"properties":{`) || strings.Contains(body, "strict") {
				t.Errorf("%s: %s", schema, body)
			}
			if strings.Contains(schema, "993") && !strings.Contains(body, `"maximum":9007199254740993`) {
				t.Errorf("%s: %s", schema, body)
			}
		}
	}
}

// TestConversation_IsStable: what was sent once is sent the same again with
// more behind it, or no provider could cache it.
func TestConversation_IsStable(t *testing.T) {
	messages := []agent.Message{user("q"), assistant("x", call("", "f", `{}`), call("a", "f", `{}`)), results(), user("r"), assistant("x", call("a", "f", `{}`))}
	before := conversation(messages[:3], "m", false)
	after := conversation(messages, "m", false)
	first, _ := json.Marshal(before[1].blocks)
	second, _ := json.Marshal(after[1].blocks)
	if string(first) != string(second) {
		t.Errorf("%s became %s", first, second)
	}
}

// FuzzConversation makes histories out of bytes and wants clean requests.
func FuzzConversation(f *testing.F) {
	for i := range 64 {
		seed := make([]byte, 96)
		for j := range seed {
			seed[j] = byte(i*31 + j*(i+7))
		}
		f.Add(seed, "text")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		g := generator{data: data, strings: []string{"", " \n", "a", "b", "a.b", "\x00", "\xff", "\u202e😀", text}}
		requests := bodies(t, agent.Request{System: g.text(), Messages: g.messages(), Tools: []agent.ToolSpec{{Name: "f", Schema: json.RawMessage(text)}}})
		if broken := testkit.Lint(requests); len(broken) > 0 {
			t.Errorf("%v\n%s\n%s\n%s", broken, requests[0].Body, requests[1].Body, requests[3].Body)
		}
		for _, i := range []int{0, 2, 3} {
			alternates(t, requests[i].Body)
		}
	})
}

func alternates(t *testing.T, body []byte) {
	var decoded struct{ Messages []struct{ Role string } }
	if err := json.Unmarshal(body, &decoded); err != nil {
		t.Fatal(err)
	}
	for i, m := range decoded.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			t.Errorf("message %d is of %s: %s", i, m.Role, body)
		}
	}
}

// generator reads choices from data until it is used up.
type generator struct {
	data    []byte
	strings []string
}

func (g *generator) choose(n int) int {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return int(b) % n
}

func (g *generator) text() string { return g.strings[g.choose(len(g.strings))] }

func (g *generator) messages() []agent.Message {
	roles := []agent.Role{agent.RoleUser, agent.RoleAssistant, agent.RoleTool, "other"}
	models := []string{"anthropic/m", "openai/m", "bedrock/m", "bedrock/us.anthropic.claude-sonnet-4-5", "x/y", ""}
	var all []agent.Message
	for len(g.data) > 0 && len(all) < 40 {
		m := agent.Message{Role: roles[g.choose(len(roles))], Model: models[g.choose(len(models))]}
		for range g.choose(5) {
			m.Blocks = append(m.Blocks, g.block())
		}
		all = append(all, m)
	}
	return all
}

func (g *generator) block() agent.Block {
	inputs := []string{`{}`, ``, `null`, `{"a":"\ud83d"}`, `{"a":"\u0000"}`, `{"a":`, `"x"`, `{"n":9007199254740993}`, g.strings[len(g.strings)-1]}
	switch g.choose(5) {
	case 0:
		return agent.Text(g.text())
	case 1:
		return agent.Block{Type: agent.BlockReasoning, Text: g.text(), Signature: []string{"", "s", reasoningContent}[g.choose(3)], Redacted: g.choose(2) == 1}
	case 2:
		return agent.Block{Type: agent.BlockResult, CallID: g.text(), Text: g.text(), IsError: g.choose(2) == 1}
	case 3:
		return agent.Block{Type: agent.BlockCall}
	}
	return call(g.text(), g.text(), inputs[g.choose(len(inputs))])
}
