package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// mcpServer is a running `tendril mcp` with a workspace of its own.
type mcpServer struct {
	*sandboxed
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *os.File
	lines   chan string
	drained chan struct{} // all that it writes was read
}

func newMCPServer(t *testing.T) *mcpServer {
	t.Helper()
	s := &mcpServer{sandboxed: newSandboxed(t, testkit.NewProvider(t))}
	if err := os.Mkdir(s.ws, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts it on pipes. Each line that it writes must be one JSON-RPC
// message.
func (s *mcpServer) start(args ...string) {
	s.t.Helper()
	s.cmd = exec.Command("tendril", append([]string{"mcp"}, args...)...)
	s.cmd.Env, s.cmd.Stderr = s.env, &s.errs
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.out, s.cmd.Stdout = ours, theirs
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	theirs.Close()
	s.lines, s.drained = make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(s.drained)
		defer close(s.lines)
		lines := bufio.NewReader(ours)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				s.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	s.t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it is gone, unless the test failed
		ours.Close()
	})
}

// reply is what a line of the server holds.
type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Error   *struct{ Code int }
	Result  struct {
		Tools             []struct{ Name string }
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
	} `json:"result"`
}

func (r reply) text() string {
	var b strings.Builder
	for _, c := range r.Result.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// next returns the next line, and false at the end.
func (s *mcpServer) next() (reply, bool) {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		if !ok {
			return reply{}, false
		}
		return s.parse(line), true
	case <-time.After(time.Minute):
		s.t.Fatalf("nothing comes\n%s", s.errs.String())
		return reply{}, false
	}
}

func (s *mcpServer) parse(line string) reply {
	s.t.Helper()
	var r reply
	if err := json.Unmarshal([]byte(line), &r); err != nil || r.Version != "2.0" || !strings.HasSuffix(line, "}\n") || strings.ContainsAny(line, "\u2028\u2029\r") {
		s.t.Fatalf("not a protocol line: %.2000q", line)
	}
	return r
}

// answer returns the reply to an id, as it is written. Other lines are dropped.
func (s *mcpServer) answer(id string) reply {
	s.t.Helper()
	for {
		r, ok := s.next()
		if !ok {
			s.t.Fatalf("it ended without an answer to %s\n%s", id, s.errs.String())
		}
		if r.Method == "" && string(r.ID) == id {
			return r
		}
	}
}

func (s *mcpServer) send(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, text); err != nil {
		s.t.Fatal(err)
	}
}

const hello = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// call sends a call of a tool; id is any JSON.
func (s *mcpServer) call(id, tool string, args any) {
	s.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + string(raw) + "}}\n")
}

// register makes a capability and waits until it is there.
func (s *mcpServer) register(name, code string) reply {
	s.t.Helper()
	s.call(`"register"`, "registerCapability", map[string]any{
		"definition": map[string]any{"name": name, "capability": "Does " + name + ".", "triggers": []string{"test asks", "test asks again"}, "suppression": []string{}},
		"code":       code,
	})
	return s.answer(`"register"`)
}

// ends waits for the end of the process and returns its exit code.
func (s *mcpServer) ends(within time.Duration) int {
	s.t.Helper()
	<-s.drained
	return s.wait(s.cmd, within)
}

func (s *mcpServer) interrupt() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
}

func handed(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../testdata/cases", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestMCP_CancelOfID0: the process dies, the request gets no reply, and the
// server goes on (case C05).
func TestMCP_CancelOfID0(t *testing.T) {
	s := newMCPServer(t)
	s.start()
	before, after, ok := strings.Cut(handed(t, "stdin/mcp-cancel-id0.ndjson"), "# wait 1 s\n")
	if !ok {
		t.Fatal("the handed lines have changed")
	}
	hello, call, _ := strings.Cut(before, `{"jsonrpc": "2.0", "id": 0`)
	s.send(hello)
	s.answer(`"i"`)
	if r := s.register("sleep_long", "Deno.writeTextFileSync(__workspace + \"/running\", \"\");\n"+handed(t, "caps/sleep_long.ts")); r.Result.IsError {
		t.Fatal(r.text())
	}
	s.send(`{"jsonrpc": "2.0", "id": 0` + call)
	eventually(t, "it runs", func() bool {
		_, err := os.Stat(filepath.Join(s.ws, "running"))
		return err == nil
	})
	s.send(after)
	for {
		r, ok := s.next()
		if !ok {
			t.Fatal("it ended")
		}
		if string(r.ID) == "0" {
			t.Errorf("a reply to a cancelled request: %+v", r)
		}
		if string(r.ID) == "5" {
			break
		}
	}
	dir := filepath.Dir(s.home)
	eventually(t, "the process is gone", func() bool { return len(processes("sleep_long", dir)) == 0 })
	s.in.Close()
	for r, ok := s.next(); ok; r, ok = s.next() {
		t.Errorf("a late line: %+v", r)
	}
	if code := s.ends(10 * time.Second); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs.String())
	}
	s.checkNothingIsLeft()
}

// TestMCP_EndsWithItsClient: stdin that ends, stdout that nobody reads, and
// SIGTERM end a running call and everything else (case C07).
func TestMCP_EndsWithItsClient(t *testing.T) {
	for name, leave := range map[string]func(s *mcpServer){
		"stdin closed":  func(s *mcpServer) { s.in.Close() },
		"stdout closed": func(s *mcpServer) { s.out.Close() },
		"both closed":   func(s *mcpServer) { s.out.Close(); s.in.Close() },
		"SIGINT":        func(s *mcpServer) { s.interrupt() },
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && name != "stdin closed" {
				t.Skip("Windows tells neither")
			}
			s := newMCPServer(t)
			s.start()
			s.send(hello)
			if r := s.register("spinner", spinner); r.Result.IsError {
				t.Fatal(r.text())
			}
			s.call("1", "execute", map[string]string{"name": "spinner"})
			eventually(t, "it runs", func() bool {
				_, err := os.Stat(filepath.Join(s.ws, "running"))
				return err == nil
			})
			leave(s)
			s.ends(10 * time.Second)
			s.checkNothingIsLeft()
		})
	}
	t.Run("nothing to read", func(t *testing.T) {
		s := newMCPServer(t)
		s.start()
		s.in.Close()
		if code := s.ends(10 * time.Second); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// TestMCP_StdoutIsTheProtocols: old and odd settings, a damaged index, --json,
// and a capability that prints what looks like protocol put nothing on stdout
// but replies (case P01).
func TestMCP_StdoutIsTheProtocols(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cases/files/index-*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no indexes", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := newMCPServer(t)
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			settings := `{"workspace":"` + s.ws + `","model":{"modelId":"old","region":"us-east-1"},"unknownKey":{"a":1},"sandbox":{"limits":{"files":3}}}`
			err = errors.Join(os.Mkdir(filepath.Join(s.ws, "tools"), 0o700), os.WriteFile(filepath.Join(s.ws, "tools", "index.json"), raw, 0o600),
				os.WriteFile(filepath.Join(s.home, "config.json"), []byte(settings), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			s.start("--json", "--expose-capabilities")
			s.send(hello + `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n")
			if r := s.answer("1"); len(r.Result.Tools) < 3 {
				t.Errorf("%+v", r)
			}
			s.in.Close()
			for _, ok := s.next(); ok; _, ok = s.next() {
			}
			if code := s.ends(10 * time.Second); code != 0 {
				t.Errorf("exit code %d\n%s", code, s.errs.String())
			}
		})
	}
	t.Run("a capability that prints protocol", func(t *testing.T) {
		s := newMCPServer(t)
		s.start()
		s.send(hello)
		fake := `{"jsonrpc":"2.0","id":9,"result":{}}`
		code := "console.log(" + "`" + fake + "\\n\u2028x" + "`" + ");\nconsole.error(" + "`" + fake + "`" + ");\n"
		if r := s.register("liar", code); r.Result.IsError {
			t.Fatal(r.text())
		}
		s.call("9", "execute", map[string]string{"name": "liar"})
		if r := s.answer("9"); !strings.Contains(r.text(), fake+"\n\u2028x") || r.Result.IsError {
			t.Errorf("%q", r.text())
		}
	})
	t.Run("settings that cannot be read", func(t *testing.T) {
		s := newMCPServer(t)
		if err := os.WriteFile(filepath.Join(s.home, "config.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.start("--json")
		if r, ok := s.next(); ok {
			t.Errorf("on stdout: %+v", r)
		}
		if code := s.ends(10 * time.Second); code != 3 {
			t.Errorf("exit code %d", code)
		}
	})
}

// TestMCP_HandedLines: the handed lines for an empty workspace and for batches
// (cases P07, P09), also with CRLF, blank lines and a last line without an end
// (P11).
func TestMCP_HandedLines(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		ids   []string // of the replies, in any order
	}{
		"empty":      {handed(t, "stdin/mcp-list-empty.ndjson"), []string{"1", "2", "3"}},
		"empty CRLF": {strings.ReplaceAll(handed(t, "stdin/mcp-list-empty.ndjson"), "\n", "\r\n\r\n"), []string{"1", "2", "3"}},
		"no end":     {strings.TrimRight(handed(t, "stdin/mcp-list-empty.ndjson"), "\n"), []string{"1", "2", "3"}},
		"batch":      {handed(t, "stdin/mcp-batch.ndjson"), []string{"null", "null", "null", "3"}},
		"malformed":  {"{\n[1\n" + strings.Repeat("[", 20_000) + "\n\xff\n5\n{}\n" + `{"jsonrpc":"2.0","id":3,"method":"ping"}`, []string{"null", "null", "null", "null", "null", "null", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newMCPServer(t)
			s.start()
			s.send(c.lines)
			s.in.Close()
			left := map[string]int{}
			for _, id := range c.ids {
				left[id]++
			}
			for line := range s.lines {
				r := s.parse(line)
				left[string(r.ID)]--
				if strings.Contains(line, "null") && string(r.ID) != "null" {
					t.Errorf("a null: %s", line)
				}
				if string(r.ID) == "null" && r.Error == nil {
					t.Errorf("no error: %s", line)
				}
			}
			for id, n := range left {
				if n != 0 {
					t.Errorf("%d more replies to %s wanted", n, id)
				}
			}
			if code := s.ends(10 * time.Second); code != 0 {
				t.Errorf("exit code %d\n%s", code, s.errs.String())
			}
		})
	}
}

// TestMCP_DigitsStay: ids, progress tokens and arguments are not rounded (case
// P08).
func TestMCP_DigitsStay(t *testing.T) {
	const big = "9007199254740993"
	s := newMCPServer(t)
	s.start()
	s.send(hello)
	if r := s.register("show", "console.log(\"go\"); console.log(Deno.readTextFileSync(import.meta.filename!).length > 0 ? JSON.stringify(args) : \"\");\n"); r.Result.IsError {
		t.Fatal(r.text())
	}
	for _, id := range []string{big, "-" + big, "1.5", "1e3", "123456789012345678901234567890", `"` + big + `"`} {
		s.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` + "\n")
		s.answer(id)
	}
	s.send(`{"jsonrpc":"2.0","id":` + big + `,"method":"tools/call","params":{"_meta":{"progressToken":` + big + `},"name":"execute","arguments":{"name":"show","args":{"id":"` + big + `"}}}}` + "\n")
	told := false
	for {
		r, ok := s.next()
		if !ok {
			t.Fatal("it ended")
		}
		if r.Method == "notifications/progress" {
			told = true
			if !bytes.Contains(r.Params, []byte(`"progressToken":`+big)) {
				t.Errorf("%s", r.Params)
			}
		}
		if string(r.ID) == big {
			if !strings.Contains(r.text(), big) {
				t.Errorf("%s", r.text())
			}
			break
		}
	}
	if !told {
		t.Error("no progress was told")
	}
}

// TestMCP_WherePeopleCannotWrite: without a home, and in a workspace that cannot
// be written, it starts and says so; registering fails as a result (case D04).
func TestMCP_WherePeopleCannotWrite(t *testing.T) {
	for name, home := range map[string]string{"no home": "", "a home that cannot be": "/proc/nothing"} {
		t.Run(name, func(t *testing.T) {
			s := newMCPServer(t)
			s.env = append(os.Environ(), "TENDRIL_HOME=", "HOME="+home, "DENO_PATH="+testkit.Deno(t), "TMPDIR="+filepath.Dir(s.home))
			s.start("--workspace", s.ws)
			s.send(hello)
			s.answer(`"i"`)
			if r := s.register("one", "console.log(1);\n"); r.Result.IsError {
				t.Error(r.text())
			}
			s.in.Close()
			s.ends(10 * time.Second)
			if !strings.Contains(s.errs.String(), "nothing is kept") {
				t.Errorf("stderr: %s", s.errs.String())
			}
		})
	}
	t.Run("read-only workspace", func(t *testing.T) {
		if os.Getuid() == 0 || runtime.GOOS == "windows" {
			t.Skip("root, and Windows, may write everywhere")
		}
		s := newMCPServer(t)
		if err := os.Chmod(s.ws, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(s.ws, 0o700) }) // so that it can be removed
		s.start()
		s.send(hello)
		if r := s.register("one", "console.log(1);\n"); !r.Result.IsError || !strings.Contains(r.text(), "cannot be written") {
			t.Errorf("%+v", r.Result)
		}
	})
}

// TestMCP_NobodyIsAsked: with the policy "ask" a capability that wants the
// network waits, and the result says what a person can run; then it works.
func TestMCP_NobodyIsAsked(t *testing.T) {
	s := newMCPServer(t)
	settings := `{"workspace":"` + s.ws + `","sandbox":{"policy":{"network":"ask"}}}`
	if err := os.WriteFile(filepath.Join(s.home, "config.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start("--expose-capabilities")
	s.send(hello)
	s.call("1", "registerCapability", map[string]any{
		"definition": map[string]any{
			"name": "news", "capability": "Says news.", "triggers": []string{"test asks", "test asks again"}, "suppression": []string{},
			"permissions": map[string]any{"net": []string{"example.com"}},
		},
		"code": "console.log(\"news\");\n",
	})
	r := s.answer("1")
	if r.Result.IsError || !strings.Contains(r.text(), "tendril capability approve news") || !strings.Contains(r.text(), "pending") {
		t.Error(r.text())
	}
	s.call("2", "execute", map[string]string{"name": "news"})
	if r := s.answer("2"); !r.Result.IsError || !strings.Contains(r.text(), "tendril capability approve news") {
		t.Error(r.text())
	}
	s.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}` + "\n")
	if r := s.answer("3"); len(r.Result.Tools) != 3 {
		t.Errorf("what waits is no tool: %+v", r.Result.Tools)
	}
	approve := exec.Command("tendril", "capability", "approve", "news")
	approve.Env = s.env
	if out, err := approve.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for { // another process has changed the registry
		if r, ok := s.next(); !ok || r.Method == "notifications/tools/list_changed" {
			break
		}
	}
	s.call("4", "news", map[string]string{})
	if r := s.answer("4"); r.Result.IsError || r.text() != "news" {
		t.Error(r.text())
	}
}
