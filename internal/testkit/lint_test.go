package testkit_test

import (
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// lint checks one body as a request to path.
func lint(path, body string) []string {
	return testkit.Lint([]testkit.Request{{N: 3, Path: path, Body: []byte(body)}})
}

// TestLint_Rules holds a body for each rule of each provider; "" is clean.
func TestLint_Rules(t *testing.T) {
	const (
		openAI    = "/v1/chat/completions"
		anthropic = "/v1/messages"
		bedrock   = "/model/m/converse-stream"
	)
	call := `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`
	use := `{"type":"tool_use","id":"a","name":"f","input":{}}`
	user := `{"role":"user","content":"hi"}`
	converseUser := `{"role":"user","content":[{"text":"hi"}]}`
	converseUse := `{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]}`
	tests := []struct{ name, path, messages, rule string }{
		{"openai clean", openAI, `{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"a","content":"x"}`, ""},
		{"openai open call", openAI, `{"role":"assistant","tool_calls":[` + call + `]}`, "call-without-result at end"},
		{"openai call then user", openAI, `{"role":"assistant","tool_calls":[` + call + `]},` + user, "call-without-result before msg 1"},
		{"openai stray result", openAI, `{"role":"tool","tool_call_id":"zz","content":"x"}`, "tool-result-without-call"},
		{"openai blank result", openAI, `{"role":"assistant","tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"a","content":" "}`, "blank-tool-content"},
		{"openai empty assistant", openAI, `{"role":"assistant","content":" "}`, "empty-assistant"},
		{"openai missing id", openAI, `{"role":"assistant","tool_calls":[` + strings.Replace(call, `"a"`, `""`, 1) + `]},{"role":"tool","tool_call_id":"","content":"x"}`, "missing-id"},
		{"openai reused id", openAI, `{"role":"assistant","tool_calls":[` + call + `,` + call + `]},{"role":"tool","tool_call_id":"a","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"}`, "id-reused"},
		{"openai name", openAI, `{"role":"assistant","tool_calls":[` + strings.Replace(call, `"f"`, `"a.b"`, 1) + `]},{"role":"tool","tool_call_id":"a","content":"x"}`, "tool-name"},
		{"openai object arguments", openAI, `{"role":"assistant","tool_calls":[` + strings.Replace(call, `"{}"`, `{}`, 1) + `]},{"role":"tool","tool_call_id":"a","content":"x"}`, "arguments-not-a-string"},
		{"openai broken arguments", openAI, `{"role":"assistant","tool_calls":[` + strings.Replace(call, `"{}"`, `"{"`, 1) + `]},{"role":"tool","tool_call_id":"a","content":"x"}`, "arguments-not-json"},
		{"openai list arguments", openAI, `{"role":"assistant","tool_calls":[` + strings.Replace(call, `"{}"`, `"[]"`, 1) + `]},{"role":"tool","tool_call_id":"a","content":"x"}`, "arguments-not-object"},
		{"lone high surrogate", openAI, `{"role":"user","content":"a\ud83d b"}`, "lone-surrogate"},
		{"lone low surrogate", openAI, `{"role":"user","content":"a\ude00 b"}`, "lone-surrogate"},
		{"surrogate pair", openAI, `{"role":"user","content":"a\ud83d\ude00 b"}`, ""},
		{"escaped backslash before u", openAI, `{"role":"user","content":"a\\ud83d \\u0000"}`, ""},
		{"nul", openAI, `{"role":"user","content":"a\u0000"}`, "NUL-in-string"},
		{"odd id type", openAI, `{"role":"tool","tool_call_id":{"x":1},"content":"x"}`, "tool-result-without-call"},

		{"anthropic clean", anthropic, user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},` + use + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"and"}]}`, ""},
		{"anthropic first", anthropic, `{"role":"assistant","content":"hi"}`, "first-role"},
		{"anthropic empty", anthropic, `{"role":"user","content":[]}`, "empty-content"},
		{"anthropic blank", anthropic, `{"role":"user","content":[{"type":"text","text":" \n"}]}`, "blank-text-block"},
		{"anthropic open use", anthropic, user + `,{"role":"assistant","content":[` + use + `]}`, "use-without-result at end"},
		{"anthropic unanswered use", anthropic, user + `,{"role":"assistant","content":[` + use + `]},` + user, "use-without-result msg 2"},
		{"anthropic stray result", anthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`, "result-without-use"},
		{"anthropic two results", anthropic, user + `,{"role":"assistant","content":[` + use + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"tool_result","tool_use_id":"a","content":"y"}]}`, "two-results"},
		{"anthropic text first", anthropic, user + `,{"role":"assistant","content":[` + use + `]},{"role":"user","content":[{"type":"text","text":"and"},{"type":"tool_result","tool_use_id":"a","content":"x"}]}`, "result-not-first"},
		{"anthropic silent error", anthropic, user + `,{"role":"assistant","content":[` + use + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"","is_error":true}]}`, "error-result-empty"},
		{"anthropic unsigned", anthropic, user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"x"}]}`, "thinking-without-signature"},
		{"anthropic input", anthropic, user + `,{"role":"assistant","content":[` + strings.Replace(use, `{}`, `"{}"`, 1) + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`, "input-not-object"},

		{"bedrock clean", bedrock, converseUser + `,` + converseUse + `,{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"x"}]}}]}`, ""},
		{"bedrock mixed", bedrock, converseUser + `,` + converseUse + `,{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"x"}]}},{"text":"and"}]}`, "text-and-toolResult"},
		{"bedrock roles", bedrock, converseUser + `,` + converseUser, "roles-not-alternating"},
		{"bedrock by shape", "/x", converseUser + `,` + converseUse, "use-without-result"},
		{"bedrock blank", bedrock, `{"role":"user","content":[{"text":""}]}`, "blank-text-block"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, lint(tt.path, `{"messages":[`+tt.messages+`]}`), tt.rule)
		})
	}
}

func TestLint_Tools(t *testing.T) {
	tests := []struct{ name, tools, rule string }{
		{"clean", `{"function":{"name":"f","parameters":{"type":"object","properties":{},"required":[]}}}`, ""},
		{"no type", `{"function":{"name":"f","parameters":{"properties":{}}}}`, "schema-not-object"},
		{"no schema", `{"function":{"name":"f"}}`, "schema-not-object"},
		{"properties", `{"function":{"name":"f","parameters":{"type":"object","properties":[]}}}`, "schema-properties"},
		{"required null", `{"function":{"name":"f","parameters":{"type":"object","required":null}}}`, "schema-required-null"},
		{"name", `{"function":{"name":"a b","parameters":{"type":"object"}}}`, "tool-name"},
		{"twice", `{"function":{"name":"f","parameters":{"type":"object"}}},{"function":{"name":"f","parameters":{"type":"object"}}}`, "duplicate-tool-name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, lint("/v1/chat/completions", `{"messages":[],"tools":[`+tt.tools+`]}`), tt.rule)
		})
	}
}

func TestLint_Bodies(t *testing.T) {
	expect(t, lint("/x", "{\"messages\":[\xff]}"), "body-not-utf8")
	expect(t, lint("/x", `{"messages":`), "body-not-json")
	expect(t, lint("/x", `{"other":1}`), "")
	expect(t, lint("/x", `[]`), "")
	marks := strings.Repeat(`{"cache_control":{}},`, 5)
	expect(t, lint("/v1/messages", `{"messages":[],"system":[`+strings.TrimSuffix(marks, ",")+`]}`), "more-than-4-cache-marks")
}

// expect wants one broken rule that contains rule, or none when it is "".
func expect(t *testing.T, broken []string, rule string) {
	t.Helper()
	if rule == "" {
		if len(broken) > 0 {
			t.Errorf("want clean, got %q", broken)
		}
		return
	}
	for _, line := range broken {
		if strings.HasPrefix(line, "request 3: ") && strings.Contains(line, rule) {
			return
		}
	}
	t.Errorf("want %q among %q", rule, broken)
}

func FuzzLint(f *testing.F) {
	f.Add("/v1/messages", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":{}}]}]}`)
	f.Add("/v1/chat/completions", `{"messages":[{"role":"assistant","tool_calls":[{"id":[]}]}],"tools":[null]}`)
	f.Fuzz(func(t *testing.T, path, body string) { lint(path, body) })
}
