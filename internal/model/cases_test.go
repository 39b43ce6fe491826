package model_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/model"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// callTexts gives each call as "id name input", or "id name malformed".
func callTexts(calls []agent.Call) []string {
	texts := []string{}
	for _, c := range calls {
		input := string(c.Input)
		if c.Malformed != "" {
			input = "malformed"
		}
		texts = append(texts, c.ID+" "+c.Name+" "+input)
	}
	return texts
}

// TestCases plays the handed failure cases of both providers.
func TestCases(t *testing.T) {
	register := func(id, name, text string) string {
		return id + ` registerCapability {"definition": {"name": "` + name + `", "capability": "Echoes.", "triggers": ["a", "b"], "suppression": []}, "code": "console.log('` + text + `')"}`
	}
	tests := []struct {
		file   string
		text   string
		calls  []string
		finish agent.Finish
		kind   agent.ErrorKind
	}{
		{file: "openai-empty-args.sse", calls: []string{"c1 listCapabilities {}"}, finish: agent.FinishCalls},
		{file: "openai-args-absent.sse", calls: []string{"c2 listCapabilities {}"}, finish: agent.FinishCalls},
		{file: "openai-empty-args-required.sse", calls: []string{"c3 execute {}"}, finish: agent.FinishCalls},
		{file: "openai-index0-parallel.sse", calls: []string{register("c1", "cap_a", "A"), register("c2", "cap_b", "B")}, finish: agent.FinishCalls},
		{file: "openai-noindex.sse", calls: []string{"b1 listCapabilities {}", `b2 execute {"name":"cap_a"}`}, finish: agent.FinishCalls},
		{file: "openai-name-repeated.sse", calls: []string{`d1 execute {"name":"cap_a"}`}, finish: agent.FinishCalls},
		{file: "openai-mixed-delta-trailing.sse", text: "Looking. Still.", calls: []string{"c1 listCapabilities {}", `c2 execute {"name":"cap_a"}`}, finish: agent.FinishCalls},
		{file: "openai-invalid-args.sse", calls: []string{"c1 execute malformed"}, finish: agent.FinishCalls},
		{file: "openai-args-object-finish-stop.sse", calls: []string{`c1 execute {"name": "cap_a"}`}, finish: agent.FinishCalls},
		{file: "openai-two-calls-one-bad.sse", calls: []string{`c1 execute {"name":"no_such"}`, "c2 listCapabilities {}"}, finish: agent.FinishCalls},
		{file: "openai-metadata-frames.sse", text: "hello", finish: agent.FinishStop},
		{file: "openai-midstream-error.sse", text: "par", kind: agent.ErrOverloaded},
		{file: "openai-midstream-error-vllm.sse", kind: agent.ErrOverloaded},
		{file: "openai-cut-no-finish.sse", kind: agent.ErrMalformed},
		{file: "openai-final.sse", text: "done", finish: agent.FinishStop},
		{file: "openai-usage-cached.sse", text: "ok", finish: agent.FinishStop},
		{file: "openai-reasoning-content.sse", calls: []string{"c1 listCapabilities {}"}, finish: agent.FinishCalls},
		{file: "openai-badname.sse", calls: []string{"c1 browser.tabs.open {}", "c2 $READFILE<|channel|> {}", "c3  {}", "c4 " + strings.Repeat("x", 90) + " {}"}, finish: agent.FinishCalls},
		{file: "gateway.html", kind: agent.ErrRequest},
		{file: "context-overflow.json", kind: agent.ErrOverflow},
		{file: "ollama-no-tools.json", kind: agent.ErrNoTools},

		{file: "anthropic-no-input-delta.sse", calls: []string{"toolu_1 listCapabilities {}"}, finish: agent.FinishCalls},
		{file: "anthropic-malformed-input.sse", calls: []string{"toolu_1 execute malformed"}, finish: agent.FinishCalls},
		{file: "anthropic-nospace-crlf.sse", text: "hello", finish: agent.FinishStop},
		{file: "anthropic-half-call.sse", text: "ok", kind: agent.ErrMalformed},
		{file: "anthropic-empty-text.sse", text: "  \n", calls: []string{"toolu_1 listCapabilities {}"}, finish: agent.FinishCalls},
		{file: "anthropic-no-content.sse", finish: agent.FinishStop},
		{file: "anthropic-three-calls.sse", calls: []string{"toolu_1 listCapabilities {}", `toolu_2 execute {"name":"sleep_long"}`, `toolu_3 execute {"name":"cap_a"}`}, finish: agent.FinishCalls},
		{file: "anthropic-final.sse", text: "done", finish: agent.FinishStop},

		{file: "zero-arg.bedrock.json", calls: []string{"tooluse_1 listCapabilities {}"}, finish: agent.FinishCalls},
		{file: "throttled-midstream.bedrock.json", kind: agent.ErrRateLimit},
		{file: "usage-cache.bedrock.json", text: "hi", finish: agent.FinishStop},
		{file: "final.bedrock.json", text: "done", finish: agent.FinishStop},
	}
	for _, tt := range tests {
		for _, split := range []string{"all", "bytes", "lines", "7"} {
			t.Run(tt.file+"/"+split, func(t *testing.T) {
				reply := testkit.Case(t, cases, tt.file)
				reply.Split = split
				o := play(t, dialectOf(tt.file), reply)
				if o.text != tt.text || o.finish != tt.finish || o.kind() != tt.kind {
					t.Errorf("text %q, finish %q, error %v", o.text, o.finish, o.err)
				}
				if got, want := strings.Join(callTexts(o.calls), "\n"), strings.Join(tt.calls, "\n"); got != want {
					t.Errorf("calls\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

func dialectOf(file string) dialect {
	if strings.HasPrefix(file, "anthropic") {
		return dialects[0]
	}
	if strings.Contains(file, ".bedrock.") {
		return dialects[3]
	}
	return dialects[1]
}

// TestCases_Braces compares code sent byte by byte with the code that the
// fragments were made from.
func TestCases_Braces(t *testing.T) {
	reply := testkit.CaseScript(t, cases, "code-braces-bytes.json").Steps[0]
	o := play(t, dialects[1], reply)
	if len(o.calls) != 1 || o.calls[0].Malformed != "" {
		t.Fatalf("got %+v", o)
	}
	var fragments strings.Builder
	for line := range strings.Lines(string(reply.Body)) {
		var chunk struct {
			Choices []struct {
				Delta struct {
					ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
				}
			}
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if ok && json.Unmarshal([]byte(data), &chunk) == nil && len(chunk.Choices) == 1 && len(chunk.Choices[0].Delta.ToolCalls) == 1 {
			fragments.WriteString(chunk.Choices[0].Delta.ToolCalls[0].Function.Arguments)
		}
	}
	var input struct{ Code string }
	err := json.Unmarshal(o.calls[0].Input, &input)
	if got := string(o.calls[0].Input); err != nil || got != fragments.String() || !strings.Contains(input.Code, `}{]\\ \"q\" é 😀 中`) {
		t.Errorf("got %s, code %s", got, input.Code)
	}
}

func TestCases_Usage(t *testing.T) {
	tests := map[string]agent.Usage{
		"anthropic-usage-cumulative.sse": {Input: 25, Output: 15, CacheRead: 1000, CacheWrite: 100},
		"usage-cache.bedrock.json":       {Input: 25, Output: 15, CacheRead: 1000, CacheWrite: 100},
		"openai-usage-cached.sse":        {Input: 600, Output: 50, CacheRead: 400},
		"openai-final.sse":               {Input: 10, Output: 5},
		"openai-loop.sse":                {},
	}
	for file, want := range tests {
		if o := play(t, dialectOf(file), testkit.Case(t, cases, file)); o.usage != want {
			t.Errorf("%s: %+v, want %+v", file, o.usage, want)
		}
	}
}

// TestUsage_IsNotBelievedWhenAFigureIsNonsense: a half believed bill would be too
// small.
func TestUsage_IsNotBelievedWhenAFigureIsNonsense(t *testing.T) {
	for _, figure := range []string{"-5", "1e300", `"many"`, "[]", "true"} {
		for _, d := range dialects {
			reply := d.turn(testkit.Turn{Text: "x", Usage: &testkit.Usage{Input: 20, Output: 4711}})
			if !bytes.Contains(reply.Body, []byte("4711")) {
				continue // frames with checksums
			}
			reply.Body = bytes.ReplaceAll(reply.Body, []byte("4711"), []byte(figure))
			if o := play(t, d, reply); o.err != nil || o.usage != (agent.Usage{}) {
				t.Errorf("%s: %v, %+v", figure, o.err, o.usage)
			}
		}
	}
}

func TestCases_WebPages(t *testing.T) {
	script := testkit.CaseScript(t, cases, "html-502.json")
	p := testkit.NewProvider(t, script.Steps...)
	m := dialects[1].open(p.URL, nil)
	for i, want := range []agent.ErrorKind{agent.ErrOverloaded, agent.ErrRequest, ""} {
		o := run(t, t.Context(), m, ask)
		if o.kind() != want {
			t.Errorf("step %d: %v", i, o.err)
		}
		if want != "" && !strings.Contains(o.err.Error(), "web page") {
			t.Errorf("step %d: %v", i, o.err)
		}
	}
}

// odd streams of OpenAI-compatible servers, each told by its data lines.
func TestOpenAI_OddStreams(t *testing.T) {
	call := func(index, id, name, args string) string {
		return `{` + index + id + `"function":{` + name + `"arguments":` + args + `}}`
	}
	delta := func(calls ...string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + strings.Join(calls, ",") + `]}}]}`
	}
	const end = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	tests := []struct {
		name   string
		frames []string
		calls  []string
		text   string
		finish agent.Finish
	}{
		{"no ids, same index, whole calls", []string{
			delta(call(`"index":0,`, ``, `"name":"a",`, `"{\"x\":1}"`)), delta(call(`"index":0,`, ``, `"name":"b",`, `"{}"`)), end},
			[]string{` a {"x":1}`, ` b {}`}, "", agent.FinishCalls},
		{"no ids, no index, one frame", []string{
			delta(call(``, ``, `"name":"a",`, `"{}"`), call(``, ``, `"name":"a",`, `{"y":2}`)), end},
			[]string{` a {}`, ` a {"y":2}`}, "", agent.FinishCalls},
		{"id only at first, no index", []string{
			delta(call(``, `"id":"p",`, `"name":"a",`, `"{\"x\""`)), delta(call(``, ``, ``, `":1}"`)), delta(call(``, `"id":"q",`, `"name":"b",`, `""`)), delta(call(``, ``, ``, `"{}"`)), end},
			[]string{`p a {"x":1}`, `q b {}`}, "", agent.FinishCalls},
		{"id repeated without index", []string{
			delta(call(``, `"id":"p",`, `"name":"a",`, `"{"`)), delta(call(``, `"id":"q",`, `"name":"b",`, `"{"`)), delta(call(``, `"id":"p",`, `"name":"a",`, `"}"`), call(``, `"id":"q",`, `"name":"b",`, `"}"`)), end},
			[]string{"p a {}", "q b {}"}, "", agent.FinishCalls},
		{"one id at two indexes", []string{
			delta(call(`"index":0,`, `"id":"p",`, `"name":"a",`, `"{}"`), call(`"index":1,`, `"id":"p",`, `"name":"b",`, `"{}"`)), end},
			[]string{"p a {}", "p b {}"}, "", agent.FinishCalls},
		{"interleaved", []string{
			delta(call(`"index":7,`, `"id":"q",`, `"name":"b",`, `"{"`)), delta(call(`"index":3,`, `"id":"p",`, `"name":"a",`, `"{"`)), delta(call(`"index":7,`, ``, ``, `"}"`)), delta(call(`"index":3,`, ``, ``, `"}"`)), end},
			[]string{"p a {}", "q b {}"}, "", agent.FinishCalls},
		{"id comes late", []string{
			delta(call(`"index":0,`, ``, `"name":"a",`, `"{"`)), delta(call(`"index":0,`, `"id":"p",`, ``, `"}"`)), end},
			[]string{"p a {}"}, "", agent.FinishCalls},
		{"done without finish", []string{`{"choices":[{"index":0,"delta":{"content":"x"}}]}`, "[DONE]"}, nil, "x", agent.FinishStop},
		{"other choices", []string{`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}`, end}, nil, "yes", agent.FinishStop},
		{"nulls", []string{`{"choices":null,"usage":null,"error":null}`, `{"choices":[{"delta":{"content":null,"tool_calls":null},"finish_reason":null}]}`, `null`, `{}`, ` `, end}, nil, "", agent.FinishStop},
		{"statistics that are none", []string{`{"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":-1,"completion_tokens":"many","prompt_tokens_details":null}}`, end}, nil, "x", agent.FinishStop},
		{"refusal", []string{`{"choices":[{"delta":{"refusal":"I cannot."}}]}`, end}, nil, "I cannot.", agent.FinishRefusal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := "data: " + strings.Join(tt.frames, "\n\ndata: ") + "\n\n"
			o := play(t, dialects[1], testkit.Reply{Body: []byte(body)})
			if o.err != nil || o.text != tt.text || o.finish != tt.finish {
				t.Errorf("text %q, finish %s, %v", o.text, o.finish, o.err)
			}
			if got, want := strings.Join(callTexts(o.calls), "\n"), strings.Join(tt.calls, "\n"); got != want {
				t.Errorf("calls\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestAnthropic_OddStreams(t *testing.T) {
	const stop = `{"type":"message_stop"}`
	tests := []struct {
		name   string
		frames []string
		calls  []string
		text   string
	}{
		{"unknown types", []string{`{"type":"new_event"}`, `{"type":"content_block_start","index":0,"content_block":{"type":"new_block"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","text":"no"}}`, `{"type":"content_block_stop","index":0}`, stop}, nil, ""},
		{"input at the start", []string{`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"a","input":{"x":1}}}`, `{"type":"content_block_stop","index":0}`, stop}, []string{`t a {"x":1}`}, ""},
		{"blocks never stopped", []string{`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"a","input":{}}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"2}"}}`, stop}, []string{`t a {"x":2}`}, ""},
		{"interleaved blocks", []string{
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"a","input":{}}}`, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"u","name":"b","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"y\":1}"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}`, stop},
			[]string{`t a {"x":1}`, `u b {"y":1}`}, ""},
		{"text in the start, no start, done", []string{`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`, `{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"b"}}`, "[DONE]", "null", stop}, nil, "ab"},
		{"deltas of no block", []string{`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{"}}`, `{"type":"content_block_stop","index":9}`, stop}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := "data: " + strings.Join(tt.frames, "\n\ndata: ") + "\n\n"
			o := play(t, dialects[0], testkit.Reply{Body: []byte(body)})
			if o.err != nil || o.text != tt.text {
				t.Errorf("text %q, %v", o.text, o.err)
			}
			if got, want := strings.Join(callTexts(o.calls), "\n"), strings.Join(tt.calls, "\n"); got != want {
				t.Errorf("calls\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestReasoning_GoesBack checks whole rounds: what a model thought is sent back
// to it as it was, and to no other model.
func TestReasoning_GoesBack(t *testing.T) {
	thinking := "event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"b3BhcXVl"}}` + "\n\n"
	signed := testkit.Anthropic(testkit.Turn{Reasoning: "I should list.", Calls: []testkit.Call{{ID: "c1", Name: "listCapabilities"}}})
	redacted := testkit.Reply{Body: []byte(strings.Replace(string(testkit.AnthropicCalls(testkit.Call{ID: "c1", Name: "x"}).Body), "event: content_block_start", thinking+"event: content_block_start", 1))}
	plain := testkit.Case(t, cases, "openai-reasoning-content.sse")
	other := plain
	other.Body = []byte(strings.ReplaceAll(string(plain.Body), "reasoning_content", "reasoning"))
	tests := []struct {
		name    string
		dialect dialect
		reply   testkit.Reply
		want    string
	}{
		{"signed", dialects[0], signed, `{"signature":"c2lnbmVk","thinking":"I should list.","type":"thinking"}`},
		{"redacted", dialects[0], redacted, `{"data":"b3BhcXVl","type":"redacted_thinking"}`},
		{"bedrock, signed", dialects[3], testkit.Bedrock(testkit.Turn{Reasoning: "I should list.", Calls: []testkit.Call{{ID: "c1", Name: "listCapabilities"}}}),
			`{"reasoningContent":{"reasoningText":{"text":"I should list.","signature":"c2lnbmVk"}}}`},
		{"bedrock, redacted", dialects[3], testkit.BedrockEvents(
			[2]string{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"b3Bh"}}}`},
			[2]string{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"cXVl"}}}`},
			[2]string{"contentBlockStop", `{"contentBlockIndex":0}`}, said("x"), [2]string{"messageStop", `{"stopReason":"end_turn"}`}),
			`{"reasoningContent":{"redactedContent":"b3BhcXVl"}}`},
		{"reasoning_content", dialects[1], plain, `"reasoning_content":"I should list."`},
		{"reasoning", dialects[1], other, `"reasoning":"I should list."`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := testkit.NewProvider(t, tt.reply, tt.dialect.turn(testkit.Turn{Text: "x"}), tt.dialect.turn(testkit.Turn{Text: "x"}))
			m := tt.dialect.open(p.URL, nil)
			req := ask
			req.Messages = append(req.Messages, replay(run(t, t.Context(), m, ask), m.Name())...)
			run(t, t.Context(), m, req)
			req.Messages[1].Model = "openai/another"
			run(t, t.Context(), m, req)
			requests := p.Requests()
			if body := string(requests[1].Body); !strings.Contains(body, tt.want) {
				t.Errorf("not sent back: %s", body)
			}
			if body := string(requests[2].Body); strings.Contains(body, "I should") || strings.Contains(body, "thinking") || strings.Contains(body, "reasoningContent") {
				t.Errorf("sent to another model: %s", body)
			}
			if broken := testkit.Lint(requests); len(broken) > 0 {
				t.Error(broken)
			}
		})
	}
}

// replay is a reply and the results of its calls as messages.
func replay(o outcome, name string) []agent.Message {
	reply := agent.Message{Role: agent.RoleAssistant, Model: name, Blocks: o.reasoning}
	results := agent.Message{Role: agent.RoleTool}
	if o.text != "" {
		reply.Blocks = append(reply.Blocks, agent.Text(o.text))
	}
	for _, c := range o.calls {
		reply.Blocks = append(reply.Blocks, agent.Block{Type: agent.BlockCall, Call: &c})
		results.Blocks = append(results.Blocks, agent.Block{Type: agent.BlockResult, CallID: c.ID, Text: ""})
	}
	return []agent.Message{reply, results}
}

// TestCases_SecondRequestIsClean answers each case's calls and looks at what
// comes next on every provider.
func TestCases_SecondRequestIsClean(t *testing.T) {
	for _, file := range []string{"openai-badname.sse", "openai-invalid-args.sse", "openai-args-object-finish-stop.sse", "openai-index0-parallel.sse", "openai-noindex.sse", "anthropic-malformed-input.sse", "anthropic-empty-text.sse", "anthropic-no-content.sse", "anthropic-three-calls.sse", "openai-code-braces.sse"} {
		o := play(t, dialectOf(file), testkit.Case(t, cases, file))
		each(t, func(t *testing.T, d dialect) {
			p := testkit.NewProvider(t, d.turn(testkit.Turn{Text: "x"}))
			req := ask
			req.Messages = append(req.Messages, replay(o, d.name+"/m")...)
			run(t, t.Context(), d.open(p.URL, nil), req)
			if broken := testkit.Lint(p.Requests()); len(broken) > 0 {
				t.Errorf("%s: %v", file, broken)
			}
		})
	}
}

// TestClient_Given keeps what a given client has.
func TestClient_Given(t *testing.T) {
	p := testkit.NewProvider(t, testkit.OpenAIText("x"))
	transport := &counting{}
	m := model.NewOpenAI(model.OpenAIOptions{ModelID: "m", BaseURL: p.URL, HTTPClient: &http.Client{Transport: transport}})
	if o := run(t, t.Context(), m, ask); o.err != nil || transport.n != 1 {
		t.Errorf("%v, %d", o.err, transport.n)
	}
}

type counting struct {
	http.Transport
	n int
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n++
	return c.Transport.RoundTrip(r)
}
