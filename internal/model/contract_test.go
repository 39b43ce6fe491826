package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/model"
	"github.com/tendril-agent/tendril/internal/testkit"
)

const cases = "../../testdata/cases"

// TestMain gives the AWS chain credentials and nothing else to find.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE0123456789", "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_BEARER_TOKEN_BEDROCK": "",
		"AWS_CA_BUNDLE": "", "SSL_CERT_FILE": "", "NODE_EXTRA_CA_CERTS": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// dialect is one adapter under the contract suite.
type dialect struct {
	name string
	open func(url string, client *http.Client) agent.Model
	turn func(testkit.Turn) testkit.Reply
	// whole is the text after which a stream counts as complete.
	whole string
	path  string
	// replace changes the first old in a reply.
	replace func(body []byte, old, with string) []byte
}

func replaceText(body []byte, old, with string) []byte {
	return bytes.Replace(body, []byte(old), []byte(with), 1)
}

var dialects = []dialect{
	{"anthropic", func(url string, c *http.Client) agent.Model {
		return model.NewAnthropic(model.AnthropicOptions{ModelID: "m", APIKey: secretKey, BaseURL: url, HTTPClient: c})
	}, testkit.Anthropic, `{"type":"message_stop"}`, "/v1/messages", replaceText},
	{"openai", func(url string, c *http.Client) agent.Model {
		return model.NewOpenAI(model.OpenAIOptions{ModelID: "m", APIKey: secretKey, BaseURL: url + "/v1", HTTPClient: c})
	}, testkit.OpenAI, `"finish_reason":"tool_calls"`, "/v1/chat/completions", replaceText},
	{"ollama", func(url string, c *http.Client) agent.Model {
		return model.NewOllama(model.OllamaOptions{ModelID: "m", Host: url + "/", HTTPClient: c})
	}, testkit.OpenAI, `"finish_reason":"tool_calls"`, "/v1/chat/completions", replaceText},
	{"bedrock", func(url string, c *http.Client) agent.Model {
		return model.NewBedrock(model.BedrockOptions{ModelID: "m", Region: "us-east-1", BaseURL: url, HTTPClient: c})
	}, testkit.Bedrock, `"stopReason":"tool_use"`, "/model/m/converse-stream", testkit.ReplaceInFrames},
}

const secretKey = "sk-canary-0123456789abcdefghij"

// each runs a test for every adapter.
func each(t *testing.T, run func(*testing.T, dialect)) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) { run(t, d) })
	}
}

// outcome is a reply as the agent loop would collect it.
type outcome struct {
	text      string
	reasoning []agent.Block
	calls     []agent.Call
	usage     agent.Usage
	usages    int
	finish    agent.Finish
	err       error
}

var ask = agent.Request{
	System:   "be brief",
	Messages: []agent.Message{{Role: agent.RoleUser, Blocks: []agent.Block{agent.Text("hi")}}},
	Tools:    []agent.ToolSpec{{Name: "listCapabilities", Description: "lists", Schema: json.RawMessage(`{"type":"object"}`)}},
}

// run asks m and checks what [agent.Model] promises of every stream.
func run(t *testing.T, ctx context.Context, m agent.Model, req agent.Request) outcome {
	t.Helper()
	var o outcome
	ended := false
	for part, err := range m.Stream(ctx, req) {
		if ended {
			t.Errorf("a part after the end: %+v, %v", part, err)
		}
		if err != nil {
			o.err, ended = err, true
			continue
		}
		ended = part.Finish != ""
		o.add(t, part)
	}
	if !ended {
		t.Error("the stream ended without a finish or an error")
	}
	if o.err != nil && len(o.calls) > 0 {
		t.Errorf("calls of a broken reply: %+v", o.calls)
	}
	var failure *agent.ModelError
	if o.err != nil && !errors.As(o.err, &failure) && ctx.Err() == nil {
		t.Errorf("an unclassified error: %T %v", o.err, o.err)
	}
	return o
}

func (o *outcome) add(t *testing.T, p agent.Part) {
	t.Helper()
	fields := 0
	if p.Text != "" {
		o.text += p.Text
		fields++
	}
	if p.Reasoning != nil {
		o.think(*p.Reasoning)
		fields++
	}
	if p.Call != nil {
		o.calls = append(o.calls, *p.Call)
		fields++
		var input map[string]json.RawMessage
		if err := json.Unmarshal(p.Call.Input, &input); err != nil || input == nil {
			t.Errorf("input of %+v is no object", p.Call)
		}
	}
	if p.Usage != nil {
		o.usage = *p.Usage
		o.usages++
		fields++
	}
	if p.Finish != "" {
		o.finish = p.Finish
		fields++
	}
	if fields != 1 {
		t.Errorf("a part with %d fields: %+v", fields, p)
	}
}

// think joins pieces of reasoning until one is signed.
func (o *outcome) think(b agent.Block) {
	last := len(o.reasoning) - 1
	if last < 0 || o.reasoning[last].Signature != "" || o.reasoning[last].Redacted || b.Redacted {
		o.reasoning = append(o.reasoning, b)
		return
	}
	o.reasoning[last].Text += b.Text
	o.reasoning[last].Signature = b.Signature
}

func (o outcome) kind() agent.ErrorKind {
	var failure *agent.ModelError
	if errors.As(o.err, &failure) {
		return failure.Kind
	}
	return ""
}

// play asks an adapter that gets reply.
func play(t *testing.T, d dialect, reply testkit.Reply) outcome {
	t.Helper()
	p := testkit.NewProvider(t, reply)
	return run(t, t.Context(), d.open(p.URL, nil), ask)
}

func TestStream_Contents(t *testing.T) {
	nested := `{"definition":{"name":"x","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}},"code":"if (a) { b(\"}\") }\n// é 😀 中"}`
	tests := []struct {
		name   string
		turn   testkit.Turn
		finish agent.Finish
	}{
		{"text", testkit.Turn{Text: "Hello, wörld 😀."}, agent.FinishStop},
		{"zero arguments", testkit.Turn{Calls: []testkit.Call{{ID: "c1", Name: "listCapabilities"}}}, agent.FinishCalls},
		{"empty object", testkit.Turn{Calls: []testkit.Call{{ID: "c1", Name: "listCapabilities", Args: "{}"}}}, agent.FinishCalls},
		{"nested arguments", testkit.Turn{Calls: []testkit.Call{{ID: "c1", Name: "registerCapability", Args: nested}}}, agent.FinishCalls},
		{"text and calls", testkit.Turn{Text: "Looking.", Calls: []testkit.Call{
			{ID: "c1", Name: "a", Args: `{"x":1}`}, {ID: "c2", Name: "b", Args: `{}`}, {ID: "c3", Name: "a", Args: `{"id":9007199254740993}`}}}, agent.FinishCalls},
		{"reasoning", testkit.Turn{Reasoning: "I should think.", Text: "Done."}, agent.FinishStop},
		{"nothing", testkit.Turn{}, agent.FinishStop},
	}
	for _, tt := range tests {
		for _, split := range []string{"all", "lines", "bytes", "7"} {
			each(t, func(t *testing.T, d dialect) {
				reply := d.turn(tt.turn)
				reply.Split = split
				o := play(t, d, reply)
				if o.err != nil || o.text != tt.turn.Text || o.finish != tt.finish {
					t.Fatalf("%s, %s: text %q, finish %s, error %v", tt.name, split, o.text, o.finish, o.err)
				}
				compareCalls(t, o.calls, tt.turn.Calls)
				if tt.turn.Reasoning != "" && (len(o.reasoning) != 1 || o.reasoning[0].Text != tt.turn.Reasoning || o.reasoning[0].Signature == "") {
					t.Errorf("reasoning %+v", o.reasoning)
				}
			})
		}
	}
}

func compareCalls(t *testing.T, got []agent.Call, want []testkit.Call) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d calls of %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		args := w.Args
		if args == "" {
			args = "{}"
		}
		if g := got[i]; g.ID != w.ID || g.Name != w.Name || string(g.Input) != args || g.Malformed != "" {
			t.Errorf("call %d is %+v (%s), want %+v", i, g, g.Input, w)
		}
	}
}

// TestStream_Cut ends a reply after every byte, now and then by a lost
// connection: without the end of the reply there is an error and no call.
func TestStream_Cut(t *testing.T) {
	turn := testkit.Turn{Text: "ok", Calls: []testkit.Call{{ID: "c1", Name: "execute", Args: `{"name":"x"}`}, {ID: "c2", Name: "execute"}}}
	each(t, func(t *testing.T, d dialect) {
		if d.name == "ollama" {
			t.Skip("the same code as openai's")
		}
		full := d.turn(turn)
		body := full.Body
		whole := strings.Index(string(body), d.whole) + len(d.whole)
		p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
			reply := testkit.Reply{Body: body[:r.N], Headers: full.Headers}
			if r.N%5 == 0 {
				reply.End = "reset"
			}
			return reply
		})
		m := d.open(p.URL, nil)
		for cut := range body {
			o := run(t, t.Context(), m, ask)
			switch {
			case cut < whole-len(d.whole) && (!ended(o) || len(o.calls) > 0):
				t.Errorf("cut at %d of %d: %d calls, %v", cut, len(body), len(o.calls), o.err)
			case o.err == nil && len(o.calls) != 2:
				t.Errorf("cut at %d of %d: accepted with %d calls", cut, len(body), len(o.calls))
			case o.err != nil && !ended(o):
				t.Errorf("cut at %d of %d: %v", cut, len(body), o.err)
			}
		}
	})
}

func TestStream_KeepsTextBeforeAnError(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		if d.name == "bedrock" {
			return // see TestBedrock_Exceptions
		}
		body := string(d.turn(testkit.Turn{Text: "partial"}).Body)
		at := strings.LastIndex(body, "ial") // the second half of the text
		end := at + strings.Index(body[at:], "\n\n") + 2
		for _, tail := range []string{
			`data: {"error":{"message":"upstream exploded","type":"server_error","code":500}}`,
			`data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
			`data: {"object":"error","message":"engine dead","code":500}`,
			`data: {"error":"CUDA out of memory"}`,
			"event: error\ndata: gone",
		} {
			o := play(t, d, testkit.Reply{Body: []byte(body[:end] + tail + "\n\n" + body[end:])})
			if o.text != "partial" || o.kind() != agent.ErrOverloaded {
				t.Errorf("%s: text %q, %v", tail, o.text, o.err)
			}
		}
		o := play(t, d, testkit.Reply{Body: []byte(body[:end] + `data: {"error":{"message":"slow down","type":"rate_limit_error","code":"429"}}` + "\n\n")})
		if o.kind() != agent.ErrRateLimit {
			t.Errorf("rate limit: %v", o.err)
		}
		o = play(t, d, testkit.Reply{Body: []byte(body[:end] + "data: {broken\n\n" + body[end:])})
		if o.text != "partial" || o.kind() != agent.ErrMalformed {
			t.Errorf("broken frame: text %q, %v", o.text, o.err)
		}
	})
}

func TestStream_Usage(t *testing.T) {
	want := testkit.Usage{Input: 25, Output: 15, CacheRead: 1000}
	each(t, func(t *testing.T, d dialect) {
		o := play(t, d, d.turn(testkit.Turn{Text: "x", Usage: &want}))
		if o.usage != (agent.Usage{Input: 25, Output: 15, CacheRead: 1000}) {
			t.Errorf("got %+v", o.usage)
		}
		if d.name == "openai" || d.name == "ollama" {
			return // their caches are written for nothing
		}
		writes := testkit.Usage{Input: 25, Output: 15, CacheRead: 1000, CacheWrite: 100}
		if o := play(t, d, d.turn(testkit.Turn{Text: "x", Usage: &writes})); o.usage != agent.Usage(writes) {
			t.Errorf("got %+v", o.usage)
		}
	})
}

// TestStream_Cancel cancels while the provider is silent at each stage.
func TestStream_Cancel(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		body := d.turn(testkit.Turn{Text: "ok", Calls: []testkit.Call{{ID: "c1", Name: "x", Args: `{"a":1}`}}}).Body
		toArguments, _, _ := bytes.Cut(body, []byte(`\"a`))
		stages := map[string]testkit.Reply{
			"before the answer": {Delay: time.Hour},
			"after the headers": {End: "hang"},
			"in an event":       {Body: body[:len(body)/4], End: "hang"},
			"in the arguments":  {Body: toArguments, End: "hang"},
		}
		for stage, reply := range stages {
			p := testkit.NewProvider(t, reply)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(30*time.Millisecond, cancel)
			if o := run(t, ctx, d.open(p.URL, nil), ask); !errors.Is(o.err, context.Canceled) {
				t.Errorf("%s: %v", stage, o.err)
			}
			cancel()
		}
		p := testkit.NewProvider(t, testkit.Reply{Body: body, End: "hang"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if o := run(t, ctx, d.open(p.URL, nil), ask); !errors.Is(o.err, context.Canceled) || len(p.Requests()) > 0 {
			t.Errorf("before the request: %v, %d requests", o.err, len(p.Requests()))
		}
		ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		q := testkit.NewProvider(t, testkit.Reply{End: "hang"})
		if o := run(t, ctx, d.open(q.URL, nil), ask); !errors.Is(o.err, context.DeadlineExceeded) {
			t.Errorf("deadline: %v", o.err)
		}
	})
}

// TestStream_Stalls ends a reply that falls silent, and none that only waits.
func TestStream_Stalls(t *testing.T) {
	const stall = 400 * time.Millisecond // long enough for a busy machine
	open := map[string]func(url string) agent.Model{
		"anthropic": func(url string) agent.Model {
			return model.NewAnthropic(model.AnthropicOptions{ModelID: "m", BaseURL: url, StallTimeout: stall})
		},
		"openai": func(url string) agent.Model {
			return model.NewOpenAI(model.OpenAIOptions{ModelID: "m", BaseURL: url, StallTimeout: stall})
		},
		"ollama": func(url string) agent.Model {
			return model.NewOllama(model.OllamaOptions{ModelID: "m", Host: url, StallTimeout: stall})
		},
		"bedrock": func(url string) agent.Model {
			return model.NewBedrock(model.BedrockOptions{ModelID: "m", Region: "us-east-1", BaseURL: url, StallTimeout: stall})
		},
	}
	each(t, func(t *testing.T, d dialect) {
		t.Parallel()
		whole := d.turn(testkit.Turn{Text: "ok", Calls: []testkit.Call{{ID: "c", Name: "x", Args: `{"a":1}`}}})
		for _, end := range []int{0, len(whole.Body) / 2} {
			reply := whole
			reply.Body, reply.End = whole.Body[:end], "hang"
			o := run(t, t.Context(), open[d.name](testkit.NewProvider(t, reply).URL), ask)
			var failure *agent.ModelError
			if !errors.As(o.err, &failure) || failure.Kind != agent.ErrCut || !failure.Temporary() || !strings.Contains(failure.Message, "stopped in the middle") {
				t.Errorf("silent after %d bytes: %v", end, o.err)
			}
		}
		slow := whole
		slow.Split, slow.Gap = "200", stall/10
		if o := run(t, t.Context(), open[d.name](testkit.NewProvider(t, slow).URL), ask); o.err != nil || len(o.calls) != 1 {
			t.Errorf("slow: %v", o.err)
		}
		if d.name != "bedrock" { // which has no comments
			pings := testkit.Reply{Body: append(bytes.Repeat([]byte(": ping\n\n"), 15), whole.Body...), Split: "9", Gap: stall / 10}
			pings.Body = pings.Body[:9*15]
			o := run(t, t.Context(), open[d.name](testkit.NewProvider(t, pings).URL), ask)
			if o.kind() != agent.ErrCut || strings.Contains(o.err.Error(), "silent") {
				t.Errorf("pings: %v", o.err)
			}
		}
		finished := whole
		finished.End = "hang"
		if o := run(t, t.Context(), open[d.name](testkit.NewProvider(t, finished).URL), ask); o.err != nil || len(o.calls) != 1 {
			t.Errorf("finished: %v", o.err)
		}
	})
}

// TestStream_WhatIsTemporary: a lost or cut reply may be asked for again, one
// that made no sense may not.
func TestStream_WhatIsTemporary(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		whole := d.turn(testkit.Turn{Text: "ok"})
		half, lost, silent, senseless := whole, whole, whole, whole
		half.Body = whole.Body[:len(whole.Body)/2+1] // within an event of every one
		lost.Body, lost.End = half.Body, "reset"
		silent.Body = nil
		senseless.Body = d.replace(whole.Body, `"o"`, `"o`)
		for name, reply := range map[string]testkit.Reply{"half": half, "lost": lost, "silent": silent, "senseless": senseless} {
			var failure *agent.ModelError
			if o := play(t, d, reply); !errors.As(o.err, &failure) || failure.Temporary() != (name != "senseless") {
				t.Errorf("%s: %v", name, o.err)
			}
		}
	})
}

// TestStream_ConsumerStops leaves the stream after each part.
func TestStream_ConsumerStops(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		reply := d.turn(testkit.Turn{Reasoning: "hm", Text: "ok", Calls: []testkit.Call{{ID: "c", Name: "x"}}})
		for stop := 1; ; stop++ {
			p := testkit.NewProvider(t, reply)
			seen := 0
			for range d.open(p.URL, nil).Stream(t.Context(), ask) {
				if seen++; seen == stop {
					break
				}
			}
			if seen < stop {
				return
			}
		}
	})
}

// TestStream_ServerKeepsFinishedStreamOpen must not wait for the server, and
// TestStream_ReusesConnections not throw good connections away.
func TestStream_ServerKeepsFinishedStreamOpen(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		reply := d.turn(testkit.Turn{Text: "ok"})
		reply.End = "hang"
		if o := play(t, d, reply); o.err != nil || o.finish != agent.FinishStop {
			t.Errorf("got %+v", o)
		}
	})
}

func TestStream_ReusesConnections(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply { return d.turn(testkit.Turn{Text: "ok"}) })
		transport := &http.Transport{MaxConnsPerHost: 1}
		defer transport.CloseIdleConnections()
		m := d.open(p.URL, &http.Client{Transport: transport})
		for range 3 {
			if o := run(t, t.Context(), m, ask); o.err != nil {
				t.Fatal(o.err)
			}
		}
	})
}

func TestStream_Finishes(t *testing.T) {
	words := map[string]map[string]agent.Finish{
		"anthropic": {"max_tokens": agent.FinishMaxTokens, "model_context_window_exceeded": agent.FinishMaxTokens, "refusal": agent.FinishRefusal, "stop_sequence": agent.FinishStop, "tool_use": agent.FinishStop, "new_word": agent.FinishStop},
		"openai":    {"length": agent.FinishMaxTokens, "content_filter": agent.FinishRefusal, "tool_calls": agent.FinishStop, "eos": agent.FinishStop},
	}
	words["ollama"] = words["openai"]
	words["bedrock"] = map[string]agent.Finish{"max_tokens": agent.FinishMaxTokens, "model_context_window_exceeded": agent.FinishMaxTokens, "guardrail_intervened": agent.FinishRefusal, "content_filtered": agent.FinishRefusal, "stop_sequence": agent.FinishStop, "end_turn": agent.FinishStop, "tool_use": agent.FinishStop, "new_word": agent.FinishStop}
	each(t, func(t *testing.T, d dialect) {
		for word, want := range words[d.name] {
			if o := play(t, d, d.turn(testkit.Turn{Text: "x", Finish: word})); o.err != nil || o.finish != want {
				t.Errorf("%s: %s, %v", word, o.finish, o.err)
			}
			call := testkit.Call{ID: "c", Name: "x", Args: `{}`}
			o := play(t, d, d.turn(testkit.Turn{Calls: []testkit.Call{call}, Finish: word}))
			withCalls := map[agent.Finish]agent.Finish{agent.FinishStop: agent.FinishCalls}
			if w, ok := withCalls[want]; ok {
				want = w
			}
			if o.finish != want || (len(o.calls) > 0) != (want != agent.FinishRefusal) {
				t.Errorf("%s with a call: %s, %d calls", word, o.finish, len(o.calls))
			}
		}
	})
}

// TestStream_TokenLimitCutsArguments never lets a cut call look like one
// without arguments.
func TestStream_TokenLimitCutsArguments(t *testing.T) {
	limit := map[string]string{"anthropic": "max_tokens", "openai": "length", "ollama": "length", "bedrock": "max_tokens"}
	each(t, func(t *testing.T, d dialect) {
		args := `{"definition":{"name":"x"}}`
		for n := range args {
			o := play(t, d, d.turn(testkit.Turn{Calls: []testkit.Call{{ID: "c", Name: "x", Args: args[:n]}}, Finish: limit[d.name]}))
			if o.finish != agent.FinishMaxTokens || len(o.calls) != 1 || o.calls[0].Malformed == "" {
				t.Errorf("cut at %d: %s, %+v, %v", n, o.finish, o.calls, o.err)
			}
		}
	})
}

// TestStream_Arguments holds what models send as arguments; want "" is
// malformed.
func TestStream_Arguments(t *testing.T) {
	tests := []struct{ args, want string }{
		{"", "{}"}, {"  \n", "{}"}, {"null", "{}"}, {`""`, "{}"},
		{`{"a":1}` + "\n  ", `{"a":1}`},
		{`"{\"a\":1}"`, `{"a":1}`},
		{`{"id":9007199254740993,"f":1.10,"e":1E400}`, `{"id":9007199254740993,"f":1.10,"e":1E400}`},
		{`{"s":"\ud83d"}`, `{"s":"\ufffd"}`},
		{`{"s":"\ud83d\ude00 \\ud83d"}`, `{"s":"\ud83d\ude00 \\ud83d"}`},
		{`{"a":1`, ""}, {`{"a":1}{"b":2}`, ""}, {`[1]`, ""}, {`"text"`, ""}, {`7`, ""}, {`{"a":"\x00"}`, ""}, {`{'a':1}`, ""},
		{`"\"{}\""`, ""}, {`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, ""},
	}
	each(t, func(t *testing.T, d dialect) {
		for _, tt := range tests {
			o := play(t, d, d.turn(testkit.Turn{Calls: []testkit.Call{{ID: "c", Name: "x", Args: tt.args}}}))
			if o.err != nil || len(o.calls) != 1 {
				t.Fatalf("%.60s: %v, %d calls", tt.args, o.err, len(o.calls))
			}
			call := o.calls[0]
			if tt.want == "" && (call.Malformed == "" || len(call.Malformed) > 600 || string(call.Input) != "{}") {
				t.Errorf("%.60s: want malformed, got %s %.60q", tt.args, call.Input, call.Malformed)
			}
			if tt.want != "" && (call.Malformed != "" || string(call.Input) != tt.want) {
				t.Errorf("%.60s: got %s %.60q", tt.args, call.Input, call.Malformed)
			}
		}
	})
}

// TestStream_Surrogates sends a pair cut in two, and halves without the other.
func TestStream_Surrogates(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		reply := d.turn(testkit.Turn{Text: "AB", Calls: []testkit.Call{{ID: "c", Name: "x", Args: `{"s": "CCCCCCCC"}`}}})
		swap := func(old, with string) { reply.Body = d.replace(reply.Body, old, with) }
		swap(`"A"`, `"a\ud83d"`)
		swap(`"B"`, `"\ude00 \ud83d b"`)
		swap(`{\"s\": \"C`, `{\"s\": \"\ud83d`)
		swap(`"CCCCCCC\"`, `"\ude00 \ude00\"`)
		o := play(t, d, reply)
		if o.err != nil || o.text != "a😀 \uFFFD b" {
			t.Errorf("text %q, %v", o.text, o.err)
		}
		if len(o.calls) != 1 || string(o.calls[0].Input) != `{"s": "😀 `+"\uFFFD"+`"}` {
			t.Errorf("calls %+v", o.calls)
		}
	})
}

// TestStream_LoneSurrogateAtTheEnd comes out at last.
func TestStream_LoneSurrogateAtTheEnd(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		reply := d.turn(testkit.Turn{Text: "AB"})
		reply.Body = d.replace(reply.Body, `"B"`, `"b\ud83d"`)
		if o := play(t, d, reply); o.text != "Ab\uFFFD" {
			t.Errorf("text %q, %v", o.text, o.err)
		}
	})
}

func TestStream_Concurrent(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply { return d.turn(testkit.Turn{Text: fmt.Sprint(len(r.Body))}) })
		m := d.open(p.URL, nil)
		errs := make(chan error)
		for range 8 {
			go func() {
				var last error
				for _, err := range m.Stream(t.Context(), ask) {
					last = err
				}
				errs <- last
			}()
		}
		for range 8 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if broken := testkit.Lint(p.Requests()); len(broken) > 0 {
			t.Error(broken)
		}
	})
}

func TestRequest_GoesWhereItShould(t *testing.T) {
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Stray: from-the-environment")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Stray: from-the-environment")
	each(t, func(t *testing.T, d dialect) {
		p := testkit.NewProvider(t, d.turn(testkit.Turn{Text: "x"}))
		if o := run(t, t.Context(), d.open(p.URL, nil), ask); o.err != nil {
			t.Fatal(o.err)
		}
		r := p.Requests()[0]
		inBody := d.name == "bedrock" || strings.Contains(string(r.Body), `"stream":true`) && strings.Contains(string(r.Body), `"model":"m"`)
		if r.Path != d.path || !inBody {
			t.Errorf("%s %s", r.Path, r.Body)
		}
		key := map[string]string{"anthropic": r.Headers.Get("X-Api-Key"), "openai": strings.TrimPrefix(r.Headers.Get("Authorization"), "Bearer "), "ollama": secretKey + r.Headers.Get("Authorization"), "bedrock": signedBy(r.Headers)}[d.name]
		if key != secretKey {
			t.Errorf("key %q", key)
		}
		for name, values := range r.Headers {
			if slices.Contains(values, "from-the-environment") || slices.Contains(values, "Bearer from-the-environment") {
				t.Errorf("%s came from the environment", name)
			}
		}
	})
}

// signedBy is secretKey when a request is signed with AWS's scheme.
func signedBy(h http.Header) string {
	if strings.HasPrefix(h.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE0123456789/") && strings.Contains(h.Get("Authorization"), "/us-east-1/bedrock/") {
		return secretKey
	}
	return h.Get("Authorization")
}

// ended says whether a reply counts as one that ended too early: lost, or closed
// by the server as if that were all.
func ended(o outcome) bool { return o.kind() == agent.ErrCut || o.kind() == agent.ErrMalformed }
