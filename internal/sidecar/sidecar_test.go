package sidecar_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/sidecar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model says what a test wants it to.
type model func(ctx context.Context, prompt string) iter.Seq2[agent.Part, error]

func (model) Name() string { return "test/model" }

func (m model) Stream(ctx context.Context, r agent.Request) iter.Seq2[agent.Part, error] {
	return m(ctx, r.Messages[len(r.Messages)-1].Blocks[0].Text)
}

// says answers each prompt with a text.
func says(text string) model {
	return func(context.Context, string) iter.Seq2[agent.Part, error] {
		return func(yield func(agent.Part, error) bool) {
			_ = yield(agent.Part{Text: text}, nil) && yield(agent.Part{Usage: &agent.Usage{Input: 10, Output: 2, CacheRead: 30, CacheWrite: 4}}, nil) &&
				yield(agent.Part{Finish: agent.FinishStop}, nil)
		}
	}
}

// waits never comes to its end by itself.
func waits(ctx context.Context, _ string) iter.Seq2[agent.Part, error] {
	return func(yield func(agent.Part, error) bool) {
		if yield(agent.Part{Text: "so far"}, nil) {
			<-ctx.Done()
			yield(agent.Part{}, ctx.Err())
		}
	}
}

// memory is a session that is not kept.
type memory struct {
	agent.MemoryLog
	id string
}

func (m *memory) ID() string { return m.id }

// options are a server's with sessions s1, s2 … in memory.
func options(t testing.TB, m agent.Model) sidecar.Options {
	n := 0
	return sidecar.Options{
		Version: "1.2.3", Log: func(text string) { t.Log(text) },
		Folder: func(path string) (string, error) {
			if path == "bad" {
				return "", errors.New("no such folder")
			}
			return "/" + path, nil
		},
		Create: func(context.Context, string) (sidecar.Session, error) {
			n++
			return &memory{id: fmt.Sprintf("s%d", n)}, nil
		},
		Load: func(_ context.Context, id string) (sidecar.Session, string, error) {
			if id != "kept" {
				return nil, "", sidecar.ErrNotFound
			}
			return &memory{id: id}, "/kept", nil
		},
		Agent: func(context.Context, string) (*agent.Agent, error) { return agent.New(agent.Options{Model: m}) },
	}
}

// shell is the other end of a server, on pipes of the system.
type shell struct {
	t      *testing.T
	in     *os.File
	lines  *bufio.Reader
	served chan error
	closed sync.Once
}

func serve(t *testing.T, o sidecar.Options) *shell {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &shell{t: t, in: inW, lines: bufio.NewReader(outR), served: make(chan error, 1)}
	o.In, o.Out = inR, outW
	go func() {
		c.served <- sidecar.Serve(context.Background(), o)
		inR.Close()
		outW.Close()
	}()
	t.Cleanup(func() {
		c.closed.Do(func() { inW.Close() })
		_, _ = io.Copy(io.Discard, c.lines) // until the server has gone
		outR.Close()
	})
	return c
}

func (c *shell) send(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(c.in, line+"\n"); err != nil {
			c.t.Fatal(err)
		}
	}
}

// until returns the lines up to the one that holds text.
func (c *shell) until(text string) (lines []string) {
	c.t.Helper()
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			c.t.Fatalf("%q did not come: %v; before it came\n%s", text, err, strings.Join(lines, "\n"))
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
		if strings.Contains(line, text) {
			return lines
		}
	}
}

// end closes the input and returns the lines that still come.
func (c *shell) end() []string {
	c.t.Helper()
	c.closed.Do(func() { c.in.Close() })
	raw, err := io.ReadAll(c.lines)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := <-c.served; err != nil {
		c.t.Error(err)
	}
	return strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\n' })
}

var duration = regexp.MustCompile(`"duration_ms":\d+`)

func (c *shell) expect(got []string, want ...string) {
	c.t.Helper()
	text := duration.ReplaceAllString(strings.Join(got, "\n"), `"duration_ms":0`)
	if text != strings.Join(want, "\n") {
		c.t.Errorf("got\n%s\nwant\n%s", text, strings.Join(want, "\n"))
	}
}

func update(fields string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"update":{` + fields + `}}}`
}

func prompt(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"prompt","params":{"sessionId":"current","messages":[{"role":"user","content":%q}]}}`, id, text)
}

// A conversation, byte for byte: the fields of the original, in its order.
func TestServe_Bytes(t *testing.T) {
	c := serve(t, options(t, says("a\u2028<b>")))
	c.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"1.0.0"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"new_session","params":{"workingDirectory":"ws"}}`, prompt("p", "hi"))
	c.expect(c.until("prompt_complete"),
		`{"jsonrpc":"2.0","id":"i","result":{"agentInfo":{"name":"tendril-agent","version":"1.2.3"},"authMethods":[]}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}`,
		update(`"sessionUpdate":"session_lifecycle","stage":"connected","agent_info":"tendril-agent","acp_session_id":"s1","is_restored":false`),
		`{"jsonrpc":"2.0","id":"p","result":{}}`,
		update(`"sessionUpdate":"agent_message_chunk","text":"a\u2028<b>","content":{"type":"text","text":"a\u2028<b>"}`),
		update(`"sessionUpdate":"message_usage","message_id":"s1-1","input_tokens":10,"output_tokens":2,"cache_creation_tokens":4,"cache_read_tokens":30,"total_tokens":46,"duration_ms":0`),
		update(`"sessionUpdate":"query_result","cost":0,"input_tokens":10,"output_tokens":2,"cache_creation_tokens":4,"cache_read_tokens":30,"total_tokens":46,"duration_ms":0,"context_tokens":44,"context_limit":128000`),
		update(`"sessionUpdate":"prompt_complete","stop_reason":"end_turn"`))
	c.expect(c.end())
}

// A cancellation that was sent right after its prompt finds it, whatever it names
// or does not; only one that names the prompt before it comes too late (C03).
func TestServe_Cancel(t *testing.T) {
	for name, params := range map[string]string{
		"none": "", "empty": `,"params":{}`, "the prompt": `,"params":{"requestId":"one"}`, "current": `,"params":{"requestId":"current"}`,
		"another": `,"params":{"requestId":"nobody"}`, "null": `,"params":{"requestId":null}`, "a list": `,"params":[1]`,
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, options(t, model(waits)))
			cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled"` + params + `}`
			c.send(cancel, prompt("one", "x"), cancel)
			c.until(`"stop_reason":"interrupted"`)
			c.send(prompt("two", "x"))
			c.until("so far")
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"one"}}`, `{"jsonrpc":"2.0","id":"q","method":"nope"}`)
			if got := c.until(`"id":"q"`); len(got) != 1 {
				t.Errorf("a late cancellation had an effect: %s", got)
			}
			c.send(`{"jsonrpc":"2.0","id":"three","method":"notifications/cancelled","params":{"requestId":"two"}}`)
			all := strings.Join(append(c.until(`"stop_reason":"interrupted"`), c.end()...), "\n")
			if !strings.Contains(all, `{"jsonrpc":"2.0","id":"three","result":{}}`) || strings.Contains(all, `"error"`) {
				t.Error(all)
			}
		})
	}
}

// While a prompt is at work another one is refused, in another session, too;
// afterwards the next one is taken (P06).
func TestServe_Busy(t *testing.T) {
	c := serve(t, options(t, model(waits)))
	c.send(`{"jsonrpc":"2.0","id":"n","method":"new_session"}`, prompt("one", "x"), prompt("two", "x"), `{"jsonrpc":"2.0","id":"m","method":"new_session"}`, prompt("three", "x"))
	busy := `"error":{"code":-32000,"message":"Prompt already in progress"}}`
	got := strings.Join(c.until(`"id":"three"`), "\n")
	for _, id := range []string{"two", "three"} {
		if !strings.Contains(got, fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,%s`, id, busy)) {
			t.Errorf("%s was not refused:\n%s", id, got)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	c.until("prompt_complete")
	c.send(prompt("four", "x"))
	c.until("so far")
	rest := strings.Join(c.end(), "\n") // the end of the input ends the turn, and it is said
	if !strings.Contains(rest, `"message_id":"s2-1"`) || !strings.HasSuffix(rest, `"sessionUpdate":"prompt_complete","stop_reason":"interrupted"}}}`) {
		t.Error(rest)
	}
}

// What breaks inside the turn ends it, with a word about it, and the next prompt
// is taken.
func TestServe_Panics(t *testing.T) {
	o := options(t, says("ok"))
	agents := 0
	makeAgent := o.Agent
	o.Agent = func(ctx context.Context, folder string) (*agent.Agent, error) {
		if agents++; agents == 1 {
			panic("secret")
		}
		return makeAgent(ctx, folder)
	}
	c := serve(t, o)
	c.send(prompt("one", "x"))
	got := c.until("prompt_complete")
	if all := strings.Join(got, "\n"); strings.Contains(all, "secret") || !strings.Contains(all, `"sessionUpdate":"error"`) || !strings.Contains(all, `"stop_reason":"error"`) {
		t.Error(all)
	}
	c.send(prompt("two", "x"))
	c.until(`"stop_reason":"end_turn"`)
	c.end()
}

// Prompts that cannot be run are answered, each once.
func TestServe_BadPrompts(t *testing.T) {
	for name, tc := range map[string]struct{ params, want string }{
		"no params":        {`null`, `"sessionUpdate":"error","message":"the prompt is empty`},
		"no messages":      {`{"messages":[]}`, `"sessionUpdate":"error","message":"the prompt is empty`},
		"blank":            {`{"messages":[{"content":" \n"}]}`, `"sessionUpdate":"error","message":"the prompt is empty`},
		"only an image":    {`{"messages":[{"content":[{"type":"image","data":"AA=="}]}]}`, `"sessionUpdate":"error","message":"the prompt is empty`},
		"null content":     {`{"messages":[{"content":null}]}`, `"sessionUpdate":"error","message":"the prompt is empty`},
		"a list":           {`[1]`, `"code":-32602,"message":"params must be an object"`},
		"messages":         {`{"messages":7}`, `"code":-32602,"message":"params.messages must not be a number"`},
		"session":          {`{"sessionId":{},"messages":[{"content":"x"}]}`, `"code":-32602,"message":"params.sessionId must not be a object"`},
		"a message":        {`{"messages":["x"]}`, `"code":-32602,"message":"the last of params.messages must be an object with a content"`},
		"content":          {`{"messages":[{"content":{"text":"x"}}]}`, `"code":-32602,"message":"the content of a message must be a string, or a list of blocks"`},
		"a block":          {`{"messages":[{"content":[{"type":"text","text":1}]}]}`, `"code":-32602,"message":"the content of a message must be a string, or a list of blocks"`},
		"an unknown one":   {`{"sessionId":"nobody","messages":[{"content":"x"}]}`, `"code":-32602,"message":"there is no session \"nobody\"`},
		"text after blank": {`{"messages":[{"content":[{"type":"text","text":" "},{"type":"text","text":"go"}]}]}`, `"text":"ok: go"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, options(t, model(func(ctx context.Context, prompt string) iter.Seq2[agent.Part, error] {
				return says("ok: "+prompt)(ctx, prompt)
			})))
			c.send(`{"jsonrpc":"2.0","id":"b","method":"prompt","params":` + tc.params + `}`)
			got := c.until(`"`)
			if !strings.Contains(got[0], `"error"`) {
				got = append(got, c.until("prompt_complete")...)
			}
			if all := strings.Join(got, "\n"); !strings.Contains(all, tc.want) || strings.Count(all, `"id":"b"`) != 1 {
				t.Error(all)
			}
			c.send(prompt("next", "again"))
			c.until(`"ok: again"`)
			c.until(`"stop_reason":"end_turn"`)
			c.expect(c.end())
		})
	}
}

// A prompt has one answer whatever its params hold; what was taken ends once, and
// all lines are messages.
func FuzzServe_Prompt(f *testing.F) {
	for _, params := range []string{
		`{}`, `null`, `[]`, `{"sessionId":"current","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`, `{"messages":[{"content":"x"}]}`,
		`{"messages":[null]}`, `{"messages":[{"content":[[]]}]}`, `{"sessionId":"\ud800","messages":[{"content":"\u2028"}]}`, `{"Messages":[{"CONTENT":"x"}]}`, "7",
	} {
		f.Add(params)
	}
	f.Fuzz(func(t *testing.T, params string) {
		params = strings.NewReplacer("\n", " ", "\r", " ").Replace(params)
		if !json.Valid([]byte(params)) {
			params = `{"messages":` + string(must(json.Marshal(params))) + `}`
		}
		if first := strings.TrimSpace(params)[0]; first != '{' && first != '[' && params != "null" || !utf8.ValidString(params) {
			return // the connection refuses it
		}
		var out strings.Builder
		o := options(t, says("{\n"))
		o.In, o.Out = strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"prompt","params":`+params+"}\n"), &out
		if err := sidecar.Serve(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		for _, line := range lines {
			var m struct{ Jsonrpc string }
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.Jsonrpc != "2.0" {
				t.Errorf("no message: %q", line)
			}
		}
		if strings.Count(out.String(), `"id":0,`) != 1 || !strings.HasPrefix(lines[0], `{"jsonrpc":"2.0","id":0,`) {
			t.Errorf("not answered once and first:\n%s", out.String())
		}
		taken, ends := strings.HasSuffix(lines[0], `"result":{}}`), strings.Count(out.String(), `"prompt_complete"`)
		if taken != (ends == 1 && strings.Contains(lines[len(lines)-1], "prompt_complete")) || ends > 1 {
			t.Errorf("taken %v, ended %d times:\n%s", taken, ends, out.String())
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A prompt may name a session that an earlier process kept; it is the current one
// from then on.
func TestServe_KeptSession(t *testing.T) {
	c := serve(t, options(t, says("ok")))
	c.send(`{"jsonrpc":"2.0","id":"k","method":"prompt","params":{"sessionId":"kept","messages":[{"content":"x"}]}}`)
	c.expect(c.until("session_lifecycle"), `{"jsonrpc":"2.0","id":"k","result":{}}`,
		update(`"sessionUpdate":"session_lifecycle","stage":"connected","agent_info":"tendril-agent","acp_session_id":"kept","is_restored":true`))
	c.until("prompt_complete")
	c.send(prompt("again", "x"))
	if got := strings.Join(c.until("prompt_complete"), "\n"); !strings.Contains(got, `"message_id":"kept-2"`) || strings.Contains(got, "session_lifecycle") {
		t.Error(got)
	}
	c.expect(c.end())
}
