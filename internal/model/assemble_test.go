package model

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// assemble plays a body to an assembler and checks what [agent.Model] promises
// of every outcome.
func assemble(t *testing.T, e *endpoint, body string, reply assembler) {
	var parts []agent.Part
	events := e.events(strings.NewReader(body))
	_, err := e.read(events, reply, func(p agent.Part, _ error) bool {
		checkPart(t, p)
		parts = append(parts, p)
		return true
	})
	if err != nil {
		err = e.cut(&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {e.streamType}}}, events, err)
		var failure *agent.ModelError
		if !errors.As(err, &failure) || failure.Kind == "" || !utf8.ValidString(err.Error()) || len(err.Error()) > 1000 {
			t.Fatalf("%T %q", err, err)
		}
	}
	for i, p := range parts {
		if (p.Finish != "") != (err == nil && i == len(parts)-1) || p.Call != nil && err != nil {
			t.Fatalf("part %d of %d before %v: %+v", i, len(parts), err, p)
		}
	}
	if err == nil && len(parts) == 0 {
		t.Fatal("neither an end nor an error")
	}
}

func checkPart(t *testing.T, p agent.Part) {
	if !utf8.ValidString(p.Text) || p.Reasoning != nil && !utf8.ValidString(p.Reasoning.Text) {
		t.Fatalf("no UTF-8: %q %+v", p.Text, p.Reasoning)
	}
	if u := p.Usage; u != nil && (u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0) {
		t.Fatalf("negative usage %+v", u)
	}
	if p.Call == nil {
		return
	}
	var input map[string]json.RawMessage
	if err := json.Unmarshal(p.Call.Input, &input); err != nil || input == nil || !utf8.ValidString(p.Call.Malformed) {
		t.Fatalf("call %+v: %s", p.Call, p.Call.Input)
	}
	if p.Call.Malformed != "" && len(input) > 0 {
		t.Fatalf("a malformed call with input: %+v", p.Call)
	}
}

// addStreams seeds a fuzzer with the handed streams.
func addStreams(f *testing.F, pattern string) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "cases", "sse", pattern))
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		stream, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(stream))
	}
}

func FuzzOpenAIStream(f *testing.F) {
	addStreams(f, "openai-*.sse")
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"\\ud83d\"}]},null,[]]}}]}\n\n")
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"\\ud83d\"}},null]},\"finish_reason\":\"length\"}]}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		e := &endpoint{provider: "openai", streamType: sseStream}
		assemble(t, e, stream, &openAIReply{endpoint: e})
	})
}

func FuzzAnthropicStream(f *testing.F) {
	addStreams(f, "anthropic-*.sse")
	f.Add("data: {\"type\":\"content_block_start\",\"index\":-1,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\\ud83d\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		e := &endpoint{provider: "anthropic", streamType: sseStream}
		assemble(t, e, stream, newAnthropicReply(e))
	})
}

// FuzzBedrockBody feeds bytes as the whole body: damaged frames.
func FuzzBedrockBody(f *testing.F) {
	for _, turn := range []testkit.Turn{{Text: "ok", Reasoning: "hm"}, {Calls: []testkit.Call{{ID: "c", Name: "x", Args: `{"a":1}`}}}} {
		f.Add(string(testkit.Bedrock(turn).Body))
	}
	f.Add(`{"message":"no"}`)
	f.Fuzz(func(t *testing.T, body string) {
		e := &endpoint{provider: "bedrock", streamType: awsStream}
		assemble(t, e, body, newBedrockReply(e))
	})
}

// FuzzBedrockStream feeds sound frames with any payload: each line is the name
// of an event, a space and its payload.
func FuzzBedrockStream(f *testing.F) {
	f.Add("messageStart {}\ncontentBlockStart {\"contentBlockIndex\":0,\"start\":{\"toolUse\":{\"toolUseId\":\"a\",\"name\":\"b\"}}}\n" +
		"contentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"toolUse\":{\"input\":\"{\\\"a\\\":\\ud83d\"}}}\nmessageStop {\"stopReason\":\"max_tokens\"}\nmetadata {\"usage\":{\"inputTokens\":-1}}")
	f.Add("contentBlockDelta {\"delta\":{\"text\":\"a\\ud83d\",\"reasoningContent\":{\"text\":\"b\",\"signature\":\"c\",\"redactedContent\":\"ZA==\"}}}\nmessageStop {\"stopReason\":\"malformed_tool_use\"}")
	f.Add("throttlingException {\"message\":\"x\"}\nnew {}\nmessageStop null")
	f.Fuzz(func(t *testing.T, lines string) {
		var events [][2]string
		for line := range strings.Lines(lines) {
			name, payload, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			events = append(events, [2]string{name[:min(len(name), 255)], payload})
		}
		e := &endpoint{provider: "bedrock", streamType: awsStream}
		assemble(t, e, string(testkit.BedrockEvents(events...).Body), newBedrockReply(e))
	})
}

func FuzzErrorBody(f *testing.F) {
	for _, s := range []string{`{"error":{"message":"x"}}`, `[{"error":"x"}]`, `{"error":[1]}`, `{"detail":[{}]}`, "<html>", "", "null", `{"error":{"code":429}}`} {
		f.Add(429, s)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := endpoint{provider: "p", redactor: newRedactor("sk-0123456789abcdef")}
		for _, failure := range []*agent.ModelError{e.classify(status, readErrorBody("", []byte(body))), e.inStream([]byte(body))} {
			if failure.Kind == "" || !utf8.ValidString(failure.Error()) || strings.Contains(failure.Error(), "sk-01234567") {
				t.Errorf("%+v", failure)
			}
		}
	})
}

func FuzzRepairEscapes(f *testing.F) {
	for _, s := range []string{`{"a":"\ud83d"}`, `{"a":"\ud83d\ude00\\ud83d\u0000"}`, `"\ude00\ud83d"`, `\u`, `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		repaired := repairEscapes(s, true)
		if again := repairEscapes(repaired, true); again != repaired {
			t.Errorf("%q, then %q", repaired, again)
		}
		if !json.Valid([]byte(s)) {
			return
		}
		var before, after any
		if json.Unmarshal([]byte(s), &before) != nil {
			return // a number out of range
		}
		if err := json.Unmarshal([]byte(repaired), &after); err != nil {
			t.Fatalf("%q: %v", repaired, err)
		}
		if strings.Contains(repaired, `\u0000`) && !strings.Contains(repaired, `\\u0000`) {
			t.Errorf("NUL in %q", repaired)
		}
	})
}

func TestJoinedString_Take(t *testing.T) {
	tests := []struct{ pieces, want []string }{
		{[]string{`"a\ud83d"`, `"\ude00b"`}, []string{"a", "😀b", ""}},
		{[]string{`"a\ud83d"`, `"b"`}, []string{"a", "\uFFFDb", ""}},
		{[]string{`"a\ud83d"`}, []string{"a", "\uFFFD"}},
		{[]string{`"a\\ud83d"`}, []string{`a\ud83d`, ""}},
		{[]string{`"a\\\ud83d"`, `"\ude00"`}, []string{`a\`, "😀", ""}},
		{[]string{`null`, `""`}, []string{"", "", ""}},
	}
	for _, tt := range tests {
		var j joinedString
		var got []string
		for _, piece := range tt.pieces {
			j.add(json.RawMessage(piece))
			got = append(got, j.take())
		}
		got = append(got, j.rest())
		if strings.Join(got, "|") != strings.Join(tt.want, "|") {
			t.Errorf("%q: got %q, want %q", tt.pieces, got, tt.want)
		}
	}
}
