package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/model"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// TestOpenAI_Providers: one adapter under other names, with other keys.
func TestOpenAI_Providers(t *testing.T) {
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		if r.N%2 == 0 {
			return testkit.OpenAIText("x")
		}
		return testkit.JSON(401, apiError("", "", "no "+secretKey))
	})
	tests := []struct {
		options      model.OpenAIOptions
		header, hint string
	}{
		{model.OpenAIOptions{}, "Authorization", "OPENAI_API_KEY"},
		{model.OpenAIOptions{Provider: "openrouter", KeyEnv: "OPENROUTER_API_KEY"}, "Authorization", "OPENROUTER_API_KEY"},
		{model.OpenAIOptions{Provider: "azure", KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key"}, "Api-Key", "AZURE_OPENAI_API_KEY"},
	}
	for i, tt := range tests {
		tt.options.ModelID, tt.options.APIKey, tt.options.BaseURL = "m", secretKey, p.URL
		m := model.NewOpenAI(tt.options)
		provider := tt.options.Provider
		if provider == "" {
			provider = "openai"
		}
		if m.Name() != provider+"/m" {
			t.Errorf("name %s", m.Name())
		}
		if o := run(t, t.Context(), m, ask); o.err != nil {
			t.Error(o.err)
		}
		for _, header := range []string{"Authorization", "Api-Key"} {
			sent := strings.TrimPrefix(p.Requests()[2*i].Headers.Get(header), "Bearer ")
			if (sent == secretKey) != (header == tt.header) || sent != "" && header != tt.header {
				t.Errorf("%s: %s is %q", provider, header, sent)
			}
		}
		o := run(t, t.Context(), m, ask)
		if text := o.err.Error(); !strings.HasPrefix(text, provider+": ") || !strings.Contains(text, tt.hint) || strings.Contains(text, secretKey[:12]) {
			t.Errorf("got %s", text)
		}
	}
}

const signature = `{"google":{"thought_signature":"c2lnbmVk\/+="}}`

// geminiReply is a step of two calls, of which the first is signed.
func geminiReply() testkit.Reply {
	body := strings.Join([]string{
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","extra_content":` + signature + `,"function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","extra_content":null,"function":{"name":"g","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"}, "\n\ndata: ")
	return testkit.Reply{Body: []byte("data: " + body + "\n\n")}
}

// TestGemini_Signatures go back with the calls that they came with, to the model
// that wrote them.
func TestGemini_Signatures(t *testing.T) {
	p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply { return geminiReply() })
	open := func(provider, id string) agent.Model {
		return model.NewOpenAI(model.OpenAIOptions{Provider: provider, ModelID: id, BaseURL: p.URL})
	}
	gemini := open("gemini", "gemini-3")
	first := run(t, t.Context(), gemini, ask)
	if len(first.calls) != 2 || first.calls[0].Signature != signature || first.calls[1].Signature != "" {
		t.Fatalf("got %+v", first.calls)
	}
	tests := []struct {
		name, wrote string
		to          agent.Model
		want        []string // the extra content of each call, "" for none
	}{
		{"its own", "gemini/gemini-3", gemini, []string{signature, ""}},
		{"of another", "openai/m", gemini, []string{`{"google":{"thought_signature":"skip_thought_signature_validator"}}`, ""}},
		{"to another of its kind", "gemini/gemini-3", open("gemini", "gemini-4"), []string{`{"google":{"thought_signature":"skip_thought_signature_validator"}}`, ""}},
		{"to another provider", "gemini/gemini-3", open("", "m"), []string{"", ""}},
	}
	for _, tt := range tests {
		req := ask
		req.Messages = append(req.Messages[:1:1], replay(first, tt.wrote)...)
		run(t, t.Context(), tt.to, req)
		requests := p.Requests()
		var body struct {
			Messages []struct {
				ToolCalls []struct {
					Extra json.RawMessage `json:"extra_content"`
				} `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal(requests[len(requests)-1].Body, &body); err != nil {
			t.Fatal(err)
		}
		for i, call := range body.Messages[2].ToolCalls {
			if got := string(call.Extra); got != tt.want[i] {
				t.Errorf("%s: call %d has %s", tt.name, i, got)
			}
		}
	}
	if broken := testkit.Lint(p.Requests()); len(broken) > 0 {
		t.Error(broken)
	}
}

// TestGemini_HostileSignature of a stored session is never written as it is.
func TestGemini_HostileSignature(t *testing.T) {
	for _, s := range []string{`{"a":`, `[]`, `"x"`, `{},"role":"system"`} {
		p := testkit.NewProvider(t, testkit.OpenAIText("x"))
		o := outcome{calls: []agent.Call{{ID: "a", Name: "f", Input: json.RawMessage(`{}`), Signature: s}}}
		req := ask
		req.Messages = append(req.Messages[:1:1], replay(o, "openai/m")...)
		run(t, t.Context(), model.NewOpenAI(model.OpenAIOptions{ModelID: "m", BaseURL: p.URL}), req)
		if body := string(p.Requests()[0].Body); strings.Contains(body, "extra_content") || !json.Valid([]byte(body)) {
			t.Errorf("%s: %s", s, body)
		}
	}
}

// TestOpenAI_ContentParts reads a content that is a list.
func TestOpenAI_ContentParts(t *testing.T) {
	frames := []string{
		`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"I should"}]}]}}]}`,
		`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":" think."}],"closed":true}]}}]}`,
		`{"choices":[{"delta":{"content":[{"type":"text","text":"He"},{"type":"new","text":"no"},{"type":"text","text":"llo \ud83d"},{"type":"reference","reference_ids":[1]}]}}]}`,
		`{"choices":[{"delta":{"content":"\ude00."}}]}`,
		`{"choices":[{"delta":{"content":[]}}]}`, `{"choices":[{"delta":{"content":[1,null]}}]}`, `{"choices":[{"delta":{"content":{"x":1}}}]}`,
		`{"choices":[{"delta":{},"finish_reason":"stop"}]}`,
	}
	o := play(t, dialects[1], testkit.Reply{Body: []byte("data: " + strings.Join(frames, "\n\ndata: ") + "\n\n")})
	if o.err != nil || o.text != "Hello 😀." {
		t.Errorf("text %q, %v", o.text, o.err)
	}
	if len(o.reasoning) != 1 || o.reasoning[0].Text != "I should think." {
		t.Errorf("reasoning %+v", o.reasoning)
	}
}
