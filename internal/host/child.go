package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/jsonrpc"
	"github.com/tendril-agent/tendril/internal/terminal"
)

const (
	initializeWithin = 10 * time.Second
	stopWithin       = 3 * time.Second // after its input was closed; it promises 2 s
	keepStderr       = 40              // lines
	maxStderrLine    = 4 << 10         // bytes
)

// peer is who talks with a child.
type peer interface {
	// handle answers what the child asks and takes what it tells, see [jsonrpc.Handler].
	handle(ctx context.Context, c *child, r *jsonrpc.Request) (any, error)
	// overheard gets each line between us: to the child, from it, or of its stderr.
	overheard(direction string, line []byte)
}

// child is an agent process, a `tendril acp`, and the connection with it.
type child struct {
	cmd    *exec.Cmd
	conn   *jsonrpc.Conn
	input  io.Closer
	done   chan struct{}   // it is gone
	ctx    context.Context // ends then
	cancel context.CancelFunc

	mu     sync.Mutex
	stderr []string // its last lines
	err    error    // how it ended
}

// startChild starts a process and initializes it. With an error it is gone
// again; its last words may still be asked for.
func startChild(ctx context.Context, cmd *exec.Cmd, p peer) (*child, error) {
	c := &child{cmd: cmd, done: make(chan struct{})}
	in, err := cmd.StdinPipe()
	if err != nil {
		return c, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return c, err
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return c, err
	}
	isolate(cmd)
	if err := cmd.Start(); err != nil {
		return c, fmt.Errorf("the agent cannot be started: %w", err)
	}
	c.input = in
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.conn = jsonrpc.New(jsonrpc.Options{
		In: &tap{reader: out, direction: "in", peer: p}, Out: &tap{writer: in, direction: "out", peer: p},
		Handler: func(ctx context.Context, r *jsonrpc.Request) (any, error) { return p.handle(ctx, c, r) },
		Log:     func(text string) { p.overheard("host", []byte(text)) },
	})
	go c.attend(errs, p)
	switch err := c.initialize(); {
	case errors.Is(err, errNoAgent): // how it ended says more; attend ends it, if it only closed its output
		<-c.done
		return c, c.why()
	case err != nil:
		c.kill()
		return c, err
	}
	return c, nil
}

// call sends a request. An error that is [errNoAgent] means that the child ended
// before it answered.
func (c *child) call(method string, params, result any) error {
	return c.callWithin(c.ctx, method, params, result)
}

func (c *child) callWithin(ctx context.Context, method string, params, result any) error {
	err := c.conn.Call(ctx, method, params, result)
	if errors.Is(err, context.Canceled) || errors.Is(err, jsonrpc.ErrClosed) {
		return errNoAgent
	}
	return err
}

// attend talks with the child until it is gone.
func (c *child) attend(errs io.Reader, p peer) {
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		c.listen(errs, p)
	}()
	if err := c.conn.Serve(c.ctx); err != nil && c.ctx.Err() == nil {
		p.overheard("host", []byte(err.Error()))
	}
	_ = c.input.Close() // of a child that closed its output: it is of no use
	select {
	case <-heard:
	case <-time.After(stopWithin): // it goes on with its output closed, or something of its own does
		_ = killGroup(c.cmd.Process)
	}
	err := c.cmd.Wait() // closes the pipes
	<-heard
	c.mu.Lock()
	if c.err = errors.New("the agent ended by itself"); err != nil {
		c.err = fmt.Errorf("the agent crashed (%w)", err)
	}
	c.mu.Unlock()
	c.cancel()
	close(c.done)
}

func (c *child) initialize() error {
	ctx, cancel := context.WithTimeout(c.ctx, initializeWithin)
	defer cancel()
	var answer sdk.InitializeResponse
	err := c.callWithin(ctx, sdk.AgentMethodInitialize, map[string]any{
		"protocolVersion": sdk.ProtocolVersionNumber,
		"clientInfo":      map[string]string{"name": "app"},
		"clientCapabilities": map[string]any{
			"_meta": map[string]any{"tendril": map[string]any{"events": true}},
		},
	}, &answer)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the agent did not answer within %s", initializeWithin)
	case err != nil:
		return fmt.Errorf("the agent refused to begin: %w", err)
	case answer.ProtocolVersion != sdk.ProtocolVersionNumber:
		return fmt.Errorf("the agent speaks version %d of the protocol, and this program version %d", answer.ProtocolVersion, sdk.ProtocolVersionNumber)
	}
	return nil
}

// listen keeps the last lines of the child's stderr.
func (c *child) listen(errs io.Reader, p peer) {
	lines := bufio.NewReaderSize(errs, maxStderrLine)
	for {
		line, _, err := lines.ReadLine() // the rest of a longer one counts as the next
		if err != nil {
			return
		}
		p.overheard("stderr", line)
		c.mu.Lock()
		c.stderr = append(c.stderr, terminal.Line(strings.ToValidUTF8(string(line), "�")))
		c.stderr = c.stderr[max(0, len(c.stderr)-keepStderr):]
		c.mu.Unlock()
	}
}

// lastWords are the last lines of the child's stderr.
func (c *child) lastWords() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.stderr...)
}

// why says how the child ended.
func (c *child) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// stop lets the child save and end, and ends it by force if it does not.
func (c *child) stop() {
	_ = c.input.Close()
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		c.kill()
	}
}

// kill ends the child and all that it started, and waits for that.
func (c *child) kill() {
	_ = killGroup(c.cmd.Process) // it may be gone
	c.cancel()
	<-c.done
}

// tap hands on what is read or written, and lets the peer hear whole lines.
type tap struct {
	reader    io.Reader
	writer    io.Writer
	direction string
	peer      peer
	line      []byte
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.reader.Read(p)
	t.hear(p[:n])
	return n, err
}

func (t *tap) Write(p []byte) (int, error) {
	n, err := t.writer.Write(p)
	t.hear(p[:n])
	return n, err
}

// maxHeard bounds a line of the debug view.
const maxHeard = 16 << 10

func (t *tap) hear(p []byte) {
	for _, b := range p {
		switch {
		case b == '\n':
			t.peer.overheard(t.direction, t.line)
			t.line = t.line[:0]
		case len(t.line) < maxHeard:
			t.line = append(t.line, b)
		}
	}
}
