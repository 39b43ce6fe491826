package window

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// The native window lives in a child process of our own, which calls [Serve]: GTK wants a thread and an
// event loop for itself, and a crash of a graphics driver must not take the host with it. We talk in JSON,
// a message a line: orders to the child, reports back. The first order opens the window; the end of orders
// closes it, so it closes also when we die. The URL travels here because a command line can be read by
// every user of the machine.

// order is a message to the child.
type order struct {
	Open  *request `json:"open,omitempty"`  // in the first one
	Raise bool     `json:"raise,omitempty"` // bring the window forward
}

// request says what to show.
type request struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	Data  string `json:"data"` // folder of cookies and storage
}

// report is a message of the child.
type report struct {
	Shown  bool   `json:"shown,omitempty"`  // the page is there
	Failed string `json:"failed,omitempty"` // why the window ends
	Log    string `json:"log,omitempty"`    // a trouble that does not end it
}

// lineLimit bounds a message.
const lineLimit = 64 << 10

// openNative opens a window in a child process.
func openNative(ctx context.Context, o Options) (*Window, error) {
	if len(o.Native) == 0 {
		return nil, errors.New("this program has none")
	}
	if !hasDisplay(o.Getenv) {
		return nil, errNoDisplay
	}
	data := filepath.Join(o.ProfileDir, "webkit")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	child, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(child, o.Native[0], o.Native[1:]...)
	cmd.Env = nativeEnvironment(o.Getenv)
	reports := &reports{shown: make(chan error, 1), log: o.Log}
	cmd.Stdout = reports
	stdin, err := cmd.StdinPipe()
	if err != nil {
		stop()
		return nil, err
	}
	p, err := start(child, stop, cmd, stdin, func(err error, said string) error {
		if reports.failed != "" {
			return errors.New(reports.failed)
		}
		return crash(err, said, o.URL)
	})
	if err != nil {
		return nil, err
	}
	orders := &orders{to: stdin}
	if err := orders.send(order{Open: &request{URL: o.URL, Title: o.Title, Data: data}}); err != nil {
		stop() // it is dead: await says of what
	}
	if err := p.await(ctx, reports.shown); err != nil {
		return nil, err
	}
	return p.window(Native, func(string) error { return orders.send(order{Raise: true}) }), nil
}

// nativeEnvironment is the environment of the child. WebKit's way to share buffers with the graphics card
// leaves windows blank with NVIDIA's own driver (bugs.webkit.org/show_bug.cgi?id=261874): it is switched off
// there, unless the person has chosen.
func nativeEnvironment(getenv func(string) string) []string {
	const dmabuf = "WEBKIT_DISABLE_DMABUF_RENDERER"
	env := environment(getenv)
	if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil && getenv(dmabuf) == "" {
		env = append(env, dmabuf+"=1")
	}
	return env
}

// crash tells how a process ended and what it said at last, without the app's address: that may hold a code.
func crash(err error, said, address string) error {
	if said == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.ReplaceAll(said, address, "(the app's address)"))
}

// orders writes orders to the child.
type orders struct {
	mu sync.Mutex
	to io.Writer
}

func (o *orders) send(message order) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return json.NewEncoder(o.to).Encode(message)
}

// reports takes what the child writes to stdout. Lines that are no report come from a library: they are dropped.
type reports struct {
	shown  chan error // gets nil when the page is shown
	log    func(text string)
	failed string // set before the process counts as ended

	line []byte // the beginning of a line whose end has not come
}

func (r *reports) Write(p []byte) (int, error) {
	r.line = append(r.line, p...)
	for {
		line, rest, found := bytes.Cut(r.line, []byte("\n"))
		if !found {
			break
		}
		r.take(line)
		r.line = rest
	}
	if len(r.line) > lineLimit {
		r.line = nil
	}
	return len(p), nil
}

func (r *reports) take(line []byte) {
	var m report
	if json.Unmarshal(line, &m) != nil {
		return
	}
	if m.Shown {
		select {
		case r.shown <- nil:
		default: // it is known
		}
	}
	if m.Failed != "" {
		r.failed = m.Failed
	}
	if m.Log != "" {
		r.log(m.Log)
	}
}
