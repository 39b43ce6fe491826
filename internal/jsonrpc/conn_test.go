package jsonrpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the other end of a served connection.
type peer struct {
	t      *testing.T
	conn   *jsonrpc.Conn
	in     *os.File // what we write to it
	out    *os.File
	lines  *bufio.Reader
	served chan error
	mu     sync.Mutex
	logged []string
}

func serve(t *testing.T, maxLine int, handler func(*peer) jsonrpc.Handler) *peer {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, in: inW, out: outR, lines: bufio.NewReader(outR), served: make(chan error, 1)}
	p.conn = jsonrpc.New(jsonrpc.Options{In: inR, Out: outW, MaxLine: maxLine, Handler: handler(p), Log: func(text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.logged = append(p.logged, text)
	}})
	go func() {
		p.served <- p.conn.Serve(context.Background())
		inR.Close()
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
	})
	return p
}

func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			p.t.Error(err)
		}
	}
}

func (p *peer) line() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("no line: %v (%q)", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// rest closes the input and returns all that still comes.
func (p *peer) rest() []string {
	p.t.Helper()
	p.in.Close()
	raw, err := io.ReadAll(p.lines)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := <-p.served; err != nil {
		p.t.Errorf("Serve: %v", err)
	}
	if len(raw) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

func echo(*peer) jsonrpc.Handler {
	return func(_ context.Context, r *jsonrpc.Request) (any, error) {
		switch r.Method {
		case "echo":
			return r.Params, nil
		case "later":
			return jsonrpc.Later(func() (any, error) { return r.Params, nil }), nil
		case "panic":
			panic("secret of the handler")
		case "later panic":
			return jsonrpc.Later(func() (any, error) { panic("secret of the work") }), nil
		case "plain error":
			return nil, errors.New("no such thing")
		case "unencodable":
			return func() {}, nil
		}
		return nil, jsonrpc.MethodNotFound(r.Method)
	}
}

// Each line that is not a notification gets one answer, whatever it holds, and
// ids come back digit by digit (cases P08, P09, P11, Z03, Z04).
func TestConn_AnswersEachLine(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"a request":           {`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":[1]}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":[1]}}`},
		"no params":           {`{"jsonrpc":"2.0","id":1,"method":"echo"}`, `{"jsonrpc":"2.0","id":1,"result":null}`},
		"CR at the end":       {`{"jsonrpc":"2.0","id":1,"method":"echo"}` + "\r", `{"jsonrpc":"2.0","id":1,"result":null}`},
		"spaces":              {"  {\"jsonrpc\" : \"2.0\" ,\t\"id\" : 1 , \"method\" : \"echo\" , \"params\" : null } ", `{"jsonrpc":"2.0","id":1,"result":null}`},
		"work":                {`{"jsonrpc":"2.0","id":1,"method":"later","params":[2]}`, `{"jsonrpc":"2.0","id":1,"result":[2]}`},
		"big id":              {`{"jsonrpc":"2.0","id":9007199254740993,"method":"echo"}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":null}`},
		"fraction id":         {`{"jsonrpc":"2.0","id":1.0,"method":"echo"}`, `{"jsonrpc":"2.0","id":1.0,"result":null}`},
		"zero id":             {`{"jsonrpc":"2.0","id":0,"method":"echo"}`, `{"jsonrpc":"2.0","id":0,"result":null}`},
		"string id":           {`{"jsonrpc":"2.0","id":"a\"é<","method":"echo"}`, `{"jsonrpc":"2.0","id":"a\"é<","result":null}`},
		"null id":             {`{"jsonrpc":"2.0","id":null,"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"result":null}`},
		"object id":           {`{"jsonrpc":"2.0","id":{"a": true},"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"array id":            {`{"jsonrpc":"2.0","id":[1],"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"true id":             {`{"jsonrpc":"2.0","id":true,"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"false id, no method": {`{"jsonrpc":"2.0","id":false}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"duplicate keys":      {`{"jsonrpc":"2.0","id":1,"id":2,"method":"nope","method":"echo"}`, `{"jsonrpc":"2.0","id":2,"result":null}`},
		"keys in other case":  {`{"jsonrpc":"2.0","id":1,"method":"echo","Method":"nope","ID":9}`, `{"jsonrpc":"2.0","id":1,"result":null}`},
		"line separators":     {"{\"jsonrpc\":\"2.0\",\"id\":\"\u2028\",\"method\":\"echo\",\"params\":[\"a\u2029b\"]}", `{"jsonrpc":"2.0","id":"\u2028","result":["a\u2029b"]}`},
		"unknown method":      {`{"jsonrpc":"2.0","id":"u","method":"nope"}`, `{"jsonrpc":"2.0","id":"u","error":{"code":-32601,"message":"method not found: nope"}}`},
		"an error":            {`{"jsonrpc":"2.0","id":1,"method":"plain error"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no such thing"}}`},
		"cut":                 {`{"jsonrpc":"2.0","id":1,"method":`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		"not JSON":            {`hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		"two values":          {`{"jsonrpc":"2.0","id":1,"method":"echo"} {}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		"not UTF-8":           {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\xff\"}", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		"too deep":            {strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		"number":              {`42`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"null":                {`null`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"empty batch":         {`[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"batch":               {`[{"jsonrpc":"2.0","id":1,"method":"echo"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"no version":          {`{"id":3,"method":"echo"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,`},
		"other version":       {`{"jsonrpc":2.0,"id":3,"method":"echo"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,`},
		"no method":           {`{"jsonrpc":"2.0","id":3}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,`},
		"method is no string": {`{"jsonrpc":"2.0","id":3,"method":null}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,`},
		"params is no object": {`{"jsonrpc":"2.0","id":3,"method":"echo","params":"x"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,`},
		"unencodable":         {`{"jsonrpc":"2.0","id":3,"method":"unencodable"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,`},
		"too long":            {`{"jsonrpc":"2.0","id":3,"method":"echo","params":["` + strings.Repeat("x", 1<<20) + `"]}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"a panic":             {`{"jsonrpc":"2.0","id":3,"method":"panic"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,`},
		"a panic of the work": {`{"jsonrpc":"2.0","id":3,"method":"later panic"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,`},
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, 1<<20, echo)
			go p.send(c.line)
			if got := p.line(); got != c.want && (strings.HasSuffix(c.want, "}") || !strings.HasPrefix(got, c.want)) || strings.Contains(got, "secret") {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			p.send(`{"jsonrpc":"2.0","id":"next","method":"echo"}`)
			if got := p.rest(); len(got) != 1 || got[0] != `{"jsonrpc":"2.0","id":"next","result":null}` {
				t.Errorf("then %s", got)
			}
			if strings.Contains(name, "panic") != (len(p.logged) == 1 && strings.Contains(p.logged[0], "secret")) && name != "unencodable" {
				t.Errorf("logged %q", p.logged)
			}
		})
	}
}

// Nothing is answered that asks for nothing.
func TestConn_IgnoresWhatAsksForNothing(t *testing.T) {
	p := serve(t, 0, echo)
	p.send("", "  \t ", "\r", `{"jsonrpc":"2.0","method":"unknown/notification"}`, `{"jsonrpc":"2.0","method":"echo"}`, `{"jsonrpc":"2.0","method":"later"}`,
		`{"jsonrpc":"2.0","id":77,"result":{}}`, `{"jsonrpc":"2.0","id":{},"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","method":"plain error"}`)
	if _, err := io.WriteString(p.in, `{"jsonrpc":"2.0","id":1,"method":"echo"}`); err != nil { // without an end of line
		t.Fatal(err)
	}
	if got := p.rest(); len(got) != 1 || got[0] != `{"jsonrpc":"2.0","id":1,"result":null}` {
		t.Errorf("got %s", got)
	}
	if len(p.logged) != 1 || p.logged[0] != "plain error: no such thing" {
		t.Errorf("logged %q", p.logged)
	}
}

// Handlers see messages in their order, so a cancellation that was sent right
// after its request always finds it.
func TestConn_HandsOnInOrder(t *testing.T) {
	p := serve(t, 0, func(*peer) jsonrpc.Handler {
		running := map[string]context.CancelFunc{} // used by the reading goroutine alone
		return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			id := string(r.Params)
			if r.Method == "cancel" {
				running[id]()
				return nil, nil
			}
			ctx, running[id] = context.WithCancel(ctx)
			return jsonrpc.Later(func() (any, error) {
				<-ctx.Done()
				return "cancelled", nil
			}), nil
		}
	})
	const n = 500
	go func() {
		for i := range n {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"work","params":[%[1]d]}`, i), fmt.Sprintf(`{"jsonrpc":"2.0","method":"cancel","params":[%d]}`, i))
		}
	}()
	for range n {
		if got := p.line(); !strings.Contains(got, `"result":"cancelled"`) {
			t.Fatal(got)
		}
	}
}

// What a handler sends after Reply follows the answer, and there is only one.
func TestRequest_Reply(t *testing.T) {
	p := serve(t, 0, func(p *peer) jsonrpc.Handler {
		return func(_ context.Context, r *jsonrpc.Request) (any, error) {
			r.Reply("first", nil)
			r.Reply("second", nil)
			if err := p.conn.Notify("after", nil); err != nil {
				return nil, err
			}
			return jsonrpc.Later(func() (any, error) { return "third", p.conn.Notify("work", map[string]int{"a": 1}) }), nil
		}
	})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	want := []string{`{"jsonrpc":"2.0","id":1,"result":"first"}`, `{"jsonrpc":"2.0","method":"after"}`, `{"jsonrpc":"2.0","method":"work","params":{"a":1}}`}
	if got := p.rest(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %s", got)
	}
}

// An id is a value, whatever its spelling, and keeps all its digits.
func TestSameID(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`0`, `0`, true}, {`5`, `5.0`, true}, {`-5.00`, `-5`, true}, {`"é"`, `"\u00e9"`, true}, {`"a/b"`, `"a\/b"`, true}, {`null`, `null`, true},
		{`1`, `"1"`, false}, {`0`, ``, false}, {`null`, `""`, false}, {`5`, `5.5`, false}, {`50`, `5.0`, false},
		{`9007199254740993`, `9007199254740992`, false}, {`9007199254740993`, `9007199254740993.0`, true},
	} {
		if got := jsonrpc.SameID(json.RawMessage(c.a), json.RawMessage(c.b)); got != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

// A request of ours gets its own answer: the first, and none after it gave up.
func TestConn_Call(t *testing.T) {
	p := serve(t, 0, func(p *peer) jsonrpc.Handler {
		return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			return jsonrpc.Later(func() (any, error) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				if r.Method == "impatient" {
					cancel()
				}
				var answer string
				if err := p.conn.Call(ctx, "ask", r.Params, &answer); err != nil {
					return nil, err
				}
				return "heard " + answer, nil
			}), nil
		}
	})
	ask := func(line string) string {
		p.send(line)
		var m struct{ ID json.RawMessage }
		if got := p.line(); json.Unmarshal([]byte(got), &m) != nil || !strings.Contains(got, `"method":"ask"`) {
			t.Fatal(got)
		}
		return string(m.ID)
	}
	id := ask(`{"jsonrpc":"2.0","id":"a","method":"x"}`)
	p.send(`{"jsonrpc":"2.0","id":"`+id+`","result":"of another id"}`, `{"jsonrpc":"2.0","id":`+id+`,"result":"one"}`, `{"jsonrpc":"2.0","id":`+id+`,"result":"two"}`)
	if got := p.line(); got != `{"jsonrpc":"2.0","id":"a","result":"heard one"}` {
		t.Error(got)
	}
	id = ask(`{"jsonrpc":"2.0","id":"float","method":"x"}`)
	p.send(`{"jsonrpc":"2.0","id":` + id + `.0,"result":"a float"}`)
	if got := p.line(); got != `{"jsonrpc":"2.0","id":"float","result":"heard a float"}` {
		t.Error(got)
	}
	id = ask(`{"jsonrpc":"2.0","id":"b","method":"x"}`)
	p.send(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":5,"message":"no"}}`)
	if got := p.line(); got != `{"jsonrpc":"2.0","id":"b","error":{"code":5,"message":"no"}}` {
		t.Error(got)
	}
	for _, odd := range []string{`"result":{}`, `"error":3`} {
		id = ask(`{"jsonrpc":"2.0","id":"c","method":"x"}`)
		p.send(`{"jsonrpc":"2.0","id":` + id + `,` + odd + `}`)
		if got := p.line(); !strings.Contains(got, `cannot be read`) {
			t.Error(got)
		}
	}
	id = ask(`{"jsonrpc":"2.0","id":"d","method":"impatient"}`)
	if got := p.line(); got != `{"jsonrpc":"2.0","id":"d","error":{"code":-32603,"message":"context canceled"}}` {
		t.Error(got)
	}
	p.send(`{"jsonrpc":"2.0","id":` + id + `,"result":"too late"}`)
	if got := p.rest(); got != nil {
		t.Error(got)
	}
}

// A client that does not read slows the work down, loses nothing of it, and can
// still cancel it.
func TestConn_SlowReader(t *testing.T) {
	const total = 200_000
	sent, cancelled := 0, make(chan struct{})
	p := serve(t, 0, func(p *peer) jsonrpc.Handler {
		return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			if r.Method == "cancel" {
				close(cancelled)
				return nil, nil
			}
			if r.Method == "nope" {
				return nil, jsonrpc.MethodNotFound(r.Method)
			}
			return jsonrpc.Later(func() (any, error) {
				for ; sent < total; sent++ {
					select {
					case <-cancelled:
						return "cancelled", nil
					default:
					}
					if err := p.conn.Notify("update", map[string]any{"n": sent, "pad": strings.Repeat("x", 100)}); err != nil {
						return nil, err
					}
				}
				return "all sent", nil
			}), nil
		}
	})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"work"}`, `{"jsonrpc":"2.0","id":2,"method":"nope"}`)
	time.Sleep(50 * time.Millisecond) // the work stands still now, or soon
	p.send(`{"jsonrpc":"2.0","method":"cancel"}`)
	<-cancelled
	n := 0
	for {
		line := p.line()
		if strings.Contains(line, `"id":1`) {
			if !strings.Contains(line, `"result":"cancelled"`) {
				t.Error(line)
			}
			break
		}
		if strings.Contains(line, `"id":2`) {
			continue
		}
		if !strings.HasPrefix(line, fmt.Sprintf(`{"jsonrpc":"2.0","method":"update","params":{"n":%d,`, n)) {
			t.Fatalf("line %d is %.100s", n, line)
		}
		n++
	}
	if n != sent || n == total {
		t.Errorf("%d lines came of %d", n, sent)
	}
}

// When nobody takes our output, the work is cancelled and Serve returns.
func TestConn_BrokenOutput(t *testing.T) {
	ended := make(chan struct{})
	p := serve(t, 0, func(p *peer) jsonrpc.Handler {
		return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			return jsonrpc.Later(func() (any, error) {
				defer close(ended)
				if err := p.conn.Notify("update", nil); err != nil {
					return nil, err
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}), nil
		}
	})
	p.out.Close()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"work"}`)
	<-ended
	if err := <-p.served; err == nil || !strings.Contains(err.Error(), "does not take our output") {
		t.Errorf("Serve: %v", err)
	}
	if err := p.conn.Notify("late", nil); err == nil {
		t.Error("a line was taken after the end")
	}
}

// When the input ends, what is nearly done comes to its end, and the rest is
// cancelled; work that does not stop is left behind.
func TestConn_EndOfInput(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	p := serve(t, 0, func(*peer) jsonrpc.Handler {
		return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			return jsonrpc.Later(func() (any, error) {
				switch r.Method {
				case "quick":
					return "done", ctx.Err()
				case "long":
					<-ctx.Done()
					return "cancelled", nil
				}
				<-release
				return nil, nil
			}), nil
		}
	})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"quick"}`, `{"jsonrpc":"2.0","id":2,"method":"long"}`, `{"jsonrpc":"2.0","id":3,"method":"stuck"}`)
	got := p.rest()
	if len(got) != 2 || got[0] != `{"jsonrpc":"2.0","id":1,"result":"done"}` || got[1] != `{"jsonrpc":"2.0","id":2,"result":"cancelled"}` {
		t.Errorf("got %s", got)
	}
}

// A client that sends without reading is refused work, and then not read from.
func TestConn_BoundsWork(t *testing.T) {
	release := make(chan struct{})
	p := serve(t, 0, func(*peer) jsonrpc.Handler {
		return func(context.Context, *jsonrpc.Request) (any, error) {
			return jsonrpc.Later(func() (any, error) { <-release; return nil, nil }), nil
		}
	})
	for range 1025 {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"work"}`)
	}
	if got := p.line(); !strings.Contains(got, `"code":-32001`) {
		t.Error(got)
	}
	close(release)
	if got := p.rest(); len(got) != 1024 {
		t.Errorf("%d answers", len(got))
	}
}

// FuzzConn: whatever comes, each line gets at most one line, which is JSON-RPC.
func FuzzConn(f *testing.F) {
	for _, seed := range []string{
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{}}\r\n\n[]\n42\n{", `{"id":{},"result":1}`, "{\"jsonrpc\":\"2.0\",\"id\":\"\u2028\",\"method\":\"echo\",\"params\":[\"\\ud800\"]}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"later panic\",\"id\":[1.0e5]}\n" + strings.Repeat("x", 5000) + "\n{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"later\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		conn := jsonrpc.New(jsonrpc.Options{In: bytes.NewReader(data), Out: &out, MaxLine: 4096, Handler: echo(nil), Log: func(string) {}})
		if err := conn.Serve(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out.Len() > 0 && out.Bytes()[out.Len()-1] != '\n' {
			t.Errorf("the last line has no end: %q", out.Bytes())
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if most := bytes.Count(data, []byte("\n")) + 1; len(lines) > most {
			t.Errorf("%d lines for %d", len(lines), most)
		}
		for _, line := range lines {
			var m map[string]json.RawMessage
			if line == "" && len(lines) == 1 {
				continue
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || string(m["jsonrpc"]) != `"2.0"` || m["id"] == nil || (m["result"] == nil) == (m["error"] == nil) || strings.ContainsAny(line, "\r\u2028\u2029") {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
}
