package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tool is a tool of the test.
type tool struct {
	name string
	call func(ctx context.Context, in agent.Invocation, report func(agent.Progress)) agent.Result
}

func (t tool) Spec() agent.ToolSpec {
	return agent.ToolSpec{Name: t.name, Description: "For the test.", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"args":{"type":"object"}}}`)}
}

func (t tool) Call(ctx context.Context, in agent.Invocation, report func(agent.Progress)) agent.Result {
	return t.call(ctx, in, report)
}

// waiting is a tool that says when it runs and when it was cancelled.
type waiting struct{ runs, cancelled chan struct{} }

func newWaiting() waiting { return waiting{make(chan struct{}, 10), make(chan struct{}, 10)} }

func (w waiting) tool() tool {
	return tool{"wait", func(ctx context.Context, _ agent.Invocation, _ func(agent.Progress)) agent.Result {
		w.runs <- struct{}{}
		<-ctx.Done()
		w.cancelled <- struct{}{}
		return agent.Result{Status: agent.Failed, Text: "cancelled"}
	}}
}

func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("did not happen: %s", what)
		panic("unreachable")
	}
}

func newServer(t *testing.T, o mcp.Options) *mcp.Server {
	t.Helper()
	if o.Warn == nil {
		o.Warn = t.Logf
	}
	s, err := mcp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// site is a server that serves by HTTP for the test.
type site struct {
	t       *testing.T
	url     string
	session string
	stop    func() // and wait
}

func serve(t *testing.T, s *mcp.Server) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, token) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := within(t, "the server ends", done); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return &site{t: t, url: "http://" + l.Addr().String() + mcp.Path, stop: stop}
}

// request sends one and returns its response and the body of that.
func (s *site) request(method, body string, header map[string]string) (*http.Response, string) {
	s.t.Helper()
	resp, err := client.Do(s.prepare(method, body, header))
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(raw)
}

// client keeps no connection, which would look like a leak.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (s *site) prepare(method, body string, header map[string]string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if s.session != "" {
		r.Header.Set("Mcp-Session-Id", s.session)
		r.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	for k, v := range header {
		switch {
		case k == "Host":
			r.Host = v
		case v == "":
			r.Header.Del(k)
		default:
			r.Header.Set(k, v)
		}
	}
	return r
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func (s *site) begin() {
	s.t.Helper()
	resp, body := s.request("POST", initialize, nil)
	if s.session = resp.Header.Get("Mcp-Session-Id"); s.session == "" {
		s.t.Fatal(resp.Status, body)
	}
	if resp, body := s.request("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil); resp.StatusCode != http.StatusAccepted {
		s.t.Fatal(resp.Status, body)
	}
}

// TestHTTP_OnlyItsUser: without the token, with another Host or Origin, from
// another site, or with the token in the URL nothing is answered.
func TestHTTP_OnlyItsUser(t *testing.T) {
	s := serve(t, newServer(t, mcp.Options{}))
	host := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), mcp.Path)
	_, port, _ := net.SplitHostPort(host)
	for name, c := range map[string]struct {
		method string
		header map[string]string
		status int
	}{
		"as it should be":      {"POST", nil, 200},
		"by name":              {"POST", map[string]string{"Host": "localhost:" + port}, 200},
		"own origin":           {"POST", map[string]string{"Origin": "http://" + host}, 200},
		"lower-case scheme":    {"POST", map[string]string{"Authorization": "bearer " + token}, 200},
		"no token":             {"POST", map[string]string{"Authorization": ""}, 401},
		"no token, GET":        {"GET", map[string]string{"Authorization": ""}, 401},
		"no token, DELETE":     {"DELETE", map[string]string{"Authorization": ""}, 401},
		"wrong token":          {"POST", map[string]string{"Authorization": "Bearer " + token[1:] + "A"}, 401},
		"half a token":         {"POST", map[string]string{"Authorization": "Bearer " + token[1:]}, 401},
		"empty token":          {"POST", map[string]string{"Authorization": "Bearer "}, 401},
		"basic":                {"POST", map[string]string{"Authorization": "Basic " + token}, 401},
		"foreign origin":       {"POST", map[string]string{"Origin": "https://evil.example"}, 403},
		"foreign origin, GET":  {"GET", map[string]string{"Origin": "https://evil.example"}, 403},
		"null origin":          {"POST", map[string]string{"Origin": "null"}, 403},
		"other port's origin":  {"POST", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		"cross-site":           {"POST", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"preflight":            {"OPTIONS", map[string]string{"Origin": "https://evil.example", "Authorization": ""}, 403},
		"rebound name":         {"POST", map[string]string{"Host": "evil.example:" + port}, 403},
		"own name, other port": {"POST", map[string]string{"Host": "127.0.0.1:1"}, 403},
		"a form":               {"POST", map[string]string{"Content-Type": "text/plain"}, 415},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := s.request(c.method, initialize, c.header)
			if resp.StatusCode != c.status {
				t.Errorf("%s: %s", resp.Status, body)
			}
			if resp.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Error("CORS is open")
			}
			if strings.Contains(body, token) {
				t.Error("the token is told")
			}
		})
	}
	url := s.url
	s.url += "?token=" + token + "&access_token=" + token
	if resp, _ := s.request("POST", initialize, map[string]string{"Authorization": ""}); resp.StatusCode != 401 {
		t.Error("a token in the URL counts:", resp.Status)
	}
	s.url = strings.TrimSuffix(url, mcp.Path) + "/"
	if resp, _ := s.request("GET", "", nil); resp.StatusCode != 404 {
		t.Error(resp.Status)
	}
}

func TestHTTP_RefusesWhatItWouldChange(t *testing.T) {
	s := serve(t, newServer(t, mcp.Options{}))
	s.begin()
	for body, code := range map[string]string{
		`{`: "-32700",
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`:                                            "-32600",
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                                                         "-32600",
		`[{"jsonrpc":"2.0","id":1e3,"method":"ping"}]`:                                                       "-32600",
		`{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}`:                                            `"id":9007199254740992`,
		`{"jsonrpc":"2.0","id":"9007199254740993","method":"ping"}`:                                          `"id":"9007199254740993"`,
		`{"jsonrpc":"2.0","id":0,"method":"ping"}`:                                                           `"id":0`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1.5}}}`: "-32600",
	} {
		if _, got := s.request("POST", body, nil); !strings.Contains(got, code) {
			t.Errorf("%s: %s", body, got)
		}
	}
	if resp, _ := s.request("POST", strings.Repeat(" ", 64<<20+1), nil); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Error(resp.Status)
	}
}

// TestHTTP_CancelEndsWithoutReply: the stream of a cancelled call ends empty; so
// does that of a session that is deleted, or of a server that ends.
func TestHTTP_CancelEndsWithoutReply(t *testing.T) {
	for name, end := range map[string]func(s *site){
		"cancelled": func(s *site) {
			s.request("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`, nil)
		},
		"deleted": func(s *site) {
			if resp, body := s.request("DELETE", "", nil); resp.StatusCode != http.StatusNoContent {
				s.t.Error(resp.Status, body)
			}
			if resp, _ := s.request("POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, nil); resp.StatusCode != http.StatusNotFound {
				s.t.Error(resp.Status)
			}
		},
		"server ends": func(s *site) { s.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiting()
			s := serve(t, newServer(t, mcp.Options{Tools: []agent.Tool{w.tool()}}))
			s.begin()
			body := make(chan string, 1)
			request := s.prepare("POST", `{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"wait","arguments":{}}}`, nil)
			go func() {
				resp, err := client.Do(request) // it has no header before its first event
				if err != nil {
					body <- err.Error() // cut when the server ends
					return
				}
				raw, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				body <- string(raw)
			}()
			within(t, "it runs", w.runs)
			end(s)
			within(t, "it is cancelled", w.cancelled)
			if got := within(t, "the stream ends", body); strings.Contains(got, `"id":0`) {
				t.Error(got)
			}
		})
	}
}

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	first, created, err := mcp.Token(path)
	if err != nil || !created || len(first) != 26 {
		t.Fatal(first, created, err)
	}
	again, created, err := mcp.Token(path)
	if err != nil || created || again != first {
		t.Error(again, created, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := mcp.Token(path); err == nil || !strings.Contains(err.Error(), "read by others") {
		t.Error(err)
	}
	for _, content := range []string{"", "short"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(path, 0o600) // of its own
		if _, _, err := mcp.Token(path); err == nil || strings.Contains(err.Error(), "short") {
			t.Error(err)
		}
	}
}

// line is a session on pipes.
type lines struct {
	in   *io.PipeWriter
	out  *json.Decoder
	done chan error
}

func stdio(t *testing.T, s *mcp.Server) *lines {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	l := &lines{toServer, json.NewDecoder(fromServer), make(chan error, 1)}
	go func() {
		l.done <- s.ServeStdio(context.Background(), in, out)
		out.Close()
	}()
	t.Cleanup(func() {
		toServer.Close()
		fromServer.Close()
	})
	return l
}

func (l *lines) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(l.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Message  string          `json:"message"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
	} `json:"error"`
}

func (l *lines) next(t *testing.T) message {
	t.Helper()
	var m message
	if err := l.out.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStdio_Answers: what the SDK leaves without a code, a panic in a tool,
// input that does not fit, and progress before the reply it belongs to.
func TestStdio_Answers(t *testing.T) {
	chatty := tool{"chatty", func(_ context.Context, in agent.Invocation, report func(agent.Progress)) agent.Result {
		report(agent.Progress{Step: "types", State: "passed", MS: 3})
		for _, line := range []string{"a", "b", "c"} {
			report(agent.Progress{Stream: "stdout", Line: line})
		}
		return agent.Result{Status: agent.Completed, Text: string(in.Input) + in.Model}
	}}
	broken := tool{"broken", func(context.Context, agent.Invocation, func(agent.Progress)) agent.Result { panic("secret") }}
	l := stdio(t, newServer(t, mcp.Options{Tools: []agent.Tool{chatty, broken}, Warn: func(string, ...any) {}}))
	l.send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if m := l.next(t); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("before initialize: %+v", m)
	}
	l.send(t, initialize)
	l.next(t)
	l.send(t, `{"jsonrpc":"2.0","id":2,"method":"no/such"}`)
	if m := l.next(t); m.Error == nil || m.Error.Code != -32601 {
		t.Errorf("%+v", m)
	}
	for args, want := range map[string]string{
		`"broken","arguments":{}`:           "bug of ours",
		`"chatty","arguments":{"NAME":"x"}`: "spelled exactly",
		`"chatty","arguments":[1]`:          "want object",
		`"chatty","arguments":null`:         "{}mcp/t",
		`"chatty"`:                          "{}mcp/t",
		`"chatty","arguments":{"args":"{\"i\":9007199254740993}"}`: `9007199254740993`,
	} {
		l.send(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":`+args+`}}`)
		if m := l.next(t); !strings.Contains(string(m.Result), want) || strings.Contains(string(m.Result), "secret") {
			t.Errorf("%s: %s %+v", args, m.Result, m.Error)
		}
	}
	l.send(t, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":"tok"},"name":"chatty"}}`)
	var told []string
	for {
		m := l.next(t)
		if m.Method == "" {
			break
		}
		if string(m.Params.Token) != `"tok"` || int(m.Params.Progress) != len(told)+1 {
			t.Errorf("%+v", m)
		}
		told = append(told, m.Params.Message)
	}
	if got := strings.Join(told, "\n"); got != "gate: types passed after 3 ms\na\nb\nc" {
		t.Errorf("%q", got)
	}
	l.in.Close()
	if err := within(t, "it ends", l.done); err != nil {
		t.Error(err)
	}
}

// TestStdio_WaitsItsTurn: more calls than are worked on at once wait, and can be
// cancelled while they do.
func TestStdio_WaitsItsTurn(t *testing.T) {
	w := waiting{make(chan struct{}, 100), make(chan struct{}, 100)}
	l := stdio(t, newServer(t, mcp.Options{Tools: []agent.Tool{w.tool()}}))
	l.send(t, initialize)
	l.next(t)
	for id := range 9 {
		l.send(t, `{"jsonrpc":"2.0","id":"c`+string(rune('0'+id))+`","method":"tools/call","params":{"name":"wait"}}`)
	}
	for range 8 {
		within(t, "eight run", w.runs)
	}
	for id := range 9 {
		l.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c`+string(rune('0'+id))+`"}}`)
	}
	for range 8 {
		within(t, "they are cancelled", w.cancelled)
	}
	l.send(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if m := l.next(t); string(m.ID) != "1" {
		t.Errorf("%+v", m)
	}
	l.in.Close()
	within(t, "it ends", l.done)
}

// TestStdio_CancelsTheSameID: a cancellation may write the id in another way than
// the call did, and one of another id ends nothing (case C05).
func TestStdio_CancelsTheSameID(t *testing.T) {
	w := waiting{make(chan struct{}, 100), make(chan struct{}, 100)}
	l := stdio(t, newServer(t, mcp.Options{Tools: []agent.Tool{w.tool()}}))
	l.send(t, initialize)
	l.next(t)
	for _, c := range []struct{ id, other, same string }{
		{`0`, `"0"`, `0`}, {`"é"`, `"e"`, `"\u00e9"`}, {`5`, `50`, `5.0`}, {`7.0`, `null`, `7`}, {`9007199254740993`, `9007199254740992`, `9007199254740993`},
	} {
		l.send(t, `{"jsonrpc":"2.0","id":`+c.id+`,"method":"tools/call","params":{"name":"wait"}}`)
		within(t, "it runs", w.runs)
		l.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+c.other+`}}`)
		l.send(t, `{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		if m := l.next(t); string(m.ID) != `"p"` || len(w.cancelled) > 0 {
			t.Errorf("a cancellation of %s ended %s: %+v", c.other, c.id, m)
		}
		l.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+c.same+`}}`)
		within(t, c.same+" is cancelled", w.cancelled)
	}
	l.in.Close()
	within(t, "it ends", l.done)
}

// registry is a registry of the test: any definitions, in a real file's info.
type registry struct {
	mu   sync.Mutex
	defs []capability.Definition
	path string
}

func (r *registry) Active(context.Context) ([]capability.Definition, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.defs, nil
}

func (r *registry) IndexInfo() fs.FileInfo {
	info, err := os.Stat(r.path)
	if err != nil {
		return nil
	}
	return info
}

func (r *registry) set(t *testing.T, defs ...capability.Definition) {
	t.Helper()
	r.mu.Lock()
	r.defs = defs
	r.mu.Unlock()
	if err := os.WriteFile(r.path+".new", []byte(strings.Repeat("x", len(defs))), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.path+".new", r.path); err != nil {
		t.Fatal(err)
	}
}

func execute() tool {
	return tool{agent.ExecuteTool, func(_ context.Context, in agent.Invocation, _ func(agent.Progress)) agent.Result {
		return agent.Result{Status: agent.Completed, Text: string(in.Input)}
	}}
}

func toolNames(t *testing.T, l *lines) map[string]json.RawMessage {
	t.Helper()
	l.send(t, `{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
	for {
		m := l.next(t)
		if m.Method != "" {
			continue
		}
		var list struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(m.Result, &list); err != nil {
			t.Fatal(err)
		}
		names := map[string]json.RawMessage{}
		for _, tool := range list.Tools {
			names[tool.Name] = tool.InputSchema
		}
		return names
	}
}

// TestExpose_FollowsTheRegistry: tools come, change and go with the registry;
// names that clients could not use are replaced, and the call reaches the
// capability.
func TestExpose_FollowsTheRegistry(t *testing.T) {
	r := &registry{path: filepath.Join(t.TempDir(), "index.json")}
	long := strings.Repeat("a_long_name_", 8)
	r.set(t, capability.Definition{Name: "one", Capability: "Does one."}, capability.Definition{Name: "execute"}, capability.Definition{Name: long, Parameters: json.RawMessage(`{"properties":{"x-mcp-header":{"type":"number"},"n":{"x-MCP-header":5}},"maximum":9007199254740993}`)})
	l := stdio(t, newServer(t, mcp.Options{Tools: []agent.Tool{execute()}, Expose: r}))
	l.send(t, initialize)
	l.next(t)
	names := toolNames(t, l)
	if len(names) != 4 || names["one"] == nil || string(names["one"]) != `{"type":"object","properties":{}}` {
		t.Fatalf("%s", names)
	}
	for name, schema := range names {
		if len(name) > 50 {
			t.Errorf("%s is too long", name)
		}
		if strings.HasPrefix(name, "a_long") {
			if !strings.Contains(string(schema), "9007199254740993") || strings.Contains(strings.ToLower(string(schema)), "x-mcp") {
				t.Errorf("%s", schema)
			}
			l.send(t, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"`+name+`","arguments":{"n":9007199254740993}}}`)
			if m := l.next(t); !strings.Contains(string(m.Result), long) || !strings.Contains(string(m.Result), "9007199254740993") {
				t.Errorf("%s", m.Result)
			}
		}
	}
	r.set(t, capability.Definition{Name: "two", Capability: "Does two."})
	for {
		if m := l.next(t); m.Method == "notifications/tools/list_changed" {
			break
		}
	}
	if names := toolNames(t, l); len(names) != 2 || names["two"] == nil {
		t.Errorf("%s", names)
	}
	l.in.Close()
	within(t, "it ends", l.done)
}

// FuzzExpose: no definition in a file, however odd, keeps the server from
// serving a sound list.
func FuzzExpose(f *testing.F) {
	f.Add("a", "b", `{"type":"object","properties":{"a":{"x-mcp-header":"A"}}}`)
	f.Add("\xff", "execute", `{"properties":{"x":{"X-Mcp-Header":{"type":"object"},"type":"array"}},"required":null}`)
	f.Add(strings.Repeat("é", 3000), "", `{"Properties":{"a":{"x-mcp-header":""}},"type":"string"}`)
	f.Fuzz(func(t *testing.T, text, name, parameters string) {
		r := &registry{path: filepath.Join(t.TempDir(), "index.json")}
		r.defs = []capability.Definition{{Name: name, Capability: text, Triggers: []string{text}, Parameters: json.RawMessage(parameters)}}
		l := stdio(t, newServer(t, mcp.Options{Tools: []agent.Tool{execute()}, Expose: r, Warn: func(string, ...any) {}}))
		l.send(t, initialize)
		l.next(t)
		for name, schema := range toolNames(t, l) {
			var object struct {
				Type       string
				Properties map[string]json.RawMessage
			}
			if err := json.Unmarshal(schema, &object); err != nil || object.Type != "object" || object.Properties == nil || len(name) > 50 {
				t.Errorf("%q: %s %v", name, schema, err)
			}
		}
		l.in.Close()
		within(t, "it ends", l.done)
	})
}
