package cli_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// acpClient drives `tendril acp`, a process of its own, as an editor does.
type acpClient struct {
	t      *testing.T
	s      *sandboxed
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	lines  chan acpMessage
	seen   []acpMessage // all that came, in order
	folder string
	lastID int
}

// acpMessage is a line of the agent.
type acpMessage struct {
	raw    string
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			Kind    string          `json:"sessionUpdate"`
			CallID  string          `json:"toolCallId"`
			Status  string          `json:"status"`
			Title   string          `json:"title"`
			Content json.RawMessage `json:"content"`
		} `json:"update"`
	} `json:"params"`
	Result struct {
		SessionID  string `json:"sessionId"`
		StopReason string `json:"stopReason"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    struct {
			Kind string `json:"kind"`
		} `json:"data"`
	} `json:"error"`
}

func (m acpMessage) isUpdate(kind string) bool { return m.Params.Update.Kind == kind }

func (s *sandboxed) acp(args ...string) *acpClient {
	s.t.Helper()
	return s.client("acp", args...)
}

// client drives `tendril COMMAND`, which speaks JSON-RPC lines.
func (s *sandboxed) client(command string, args ...string) *acpClient {
	s.t.Helper()
	c := &acpClient{t: s.t, s: s, lines: make(chan acpMessage, 1<<16), folder: filepath.Join(filepath.Dir(s.home), "project")}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		s.t.Fatal(err)
	}
	c.cmd = exec.Command("tendril", append([]string{command}, args...)...)
	c.cmd.Env = s.env
	s.errs.Reset()
	c.cmd.Stderr = &s.errs
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	go c.read()
	return c
}

// read checks that each line is a message (case P01).
func (c *acpClient) read() {
	defer close(c.lines)
	r := bufio.NewReader(c.out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			if line != "" {
				c.t.Errorf("a line without an end: %.200q", line)
			}
			return
		}
		m := acpMessage{raw: strings.TrimSuffix(line, "\n")}
		var fields map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &fields) != nil || string(fields["jsonrpc"]) != `"2.0"` || strings.ContainsAny(m.raw, "\r\u2028\u2029") {
			c.t.Errorf("no message: %.300q", line)
		}
		_ = json.Unmarshal([]byte(line), &m) // the parts that fit
		c.lines <- m
	}
}

// next returns the next message that fits, and keeps those before it.
func (c *acpClient) next(what string, fits func(acpMessage) bool) acpMessage {
	c.t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		select {
		case m, ok := <-c.lines:
			if !ok {
				c.t.Fatalf("the output ended before: %s\n%s", what, c.s.errs.String())
			}
			c.seen = append(c.seen, m)
			if fits(m) {
				return m
			}
		case <-timeout:
			c.t.Fatalf("did not come: %s\n%s", what, c.s.errs.String())
		}
	}
}

func (c *acpClient) update(kind string) acpMessage {
	c.t.Helper()
	return c.next(kind, func(m acpMessage) bool { return m.isUpdate(kind) })
}

func (c *acpClient) answer(id string) acpMessage {
	c.t.Helper()
	return c.next("the answer to "+id, func(m acpMessage) bool { return m.Method == "" && string(m.ID) == id })
}

func (c *acpClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// request sends a request and returns its id.
func (c *acpClient) request(method string, params any) string {
	c.t.Helper()
	c.lastID++
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.lastID, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(raw))
	id, _ := json.Marshal(c.lastID)
	return string(id)
}

func (c *acpClient) notify(method string, params any) {
	c.t.Helper()
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(raw))
}

// begin initializes and opens a session.
func (c *acpClient) begin() (sid string) {
	c.t.Helper()
	c.answer(c.request("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}))
	return c.newSession()
}

func (c *acpClient) newSession() string {
	c.t.Helper()
	m := c.answer(c.request("session/new", map[string]any{"cwd": c.folder, "mcpServers": []any{}}))
	if m.Result.SessionID == "" {
		c.t.Fatalf("no session: %s", m.raw)
	}
	return m.Result.SessionID
}

func (c *acpClient) prompt(sid, text string) (id string) {
	c.t.Helper()
	return c.request("session/prompt", map[string]any{"sessionId": sid, "prompt": []any{map[string]string{"type": "text", "text": text}}})
}

func (c *acpClient) cancel(sid string) {
	c.t.Helper()
	c.notify("session/cancel", map[string]string{"sessionId": sid})
}

// end closes stdin, waits for the process and returns the messages that still
// came and the exit code.
func (c *acpClient) end() (rest []acpMessage, code int) {
	c.t.Helper()
	c.in.Close()
	for m := range c.lines { // before Wait, which closes the pipe
		rest = append(rest, m)
	}
	return rest, c.s.wait(c.cmd, 20*time.Second)
}

// done ends the process and checks that nothing is left of it.
func (c *acpClient) done() {
	c.t.Helper()
	if rest, code := c.end(); code != 0 || len(rest) > 0 {
		c.t.Errorf("exit code %d, then came %v\n%s", code, rest, c.s.errs.String())
	}
	c.s.checkNothingIsLeft()
}
