package window

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
)

// devtools leads a browser of the Chromium family: the DevTools protocol (chromedevtools.github.io) on the
// pipes of --remote-debugging-pipe, JSON messages that end in a NUL byte. No port is opened, and the
// browser ends when the pipe is closed.
type devtools struct {
	r      *bufio.Reader
	origin *url.URL
	browse func(address string) // opens it in the default browser
	sent   map[string]bool      // ids of pages that were sent away

	page string // id of the app's page, set by open

	mu sync.Mutex // guards the rest
	w  io.Writer
	id int
}

// message is a command, an answer or an event.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// messageLimit bounds a message; those that we ask for are short.
const messageLimit = 1 << 20

// target is a page, or something else that the browser runs.
type target struct {
	ID   string `json:"targetId"`
	Type string `json:"type"`
	URL  string `json:"url"`
}

// placeholder is the beginning of what the app window shows until open.
const placeholder = "data:text/html,"

// open waits for the app's window and goes to the URL.
func (d *devtools) open(address string) error {
	if _, err := d.call("", "Target.setDiscoverTargets", map[string]any{"discover": true}); err != nil {
		return err
	}
	for d.page == "" {
		if _, err := d.read(); err != nil {
			return err
		}
	}
	result, err := d.call("", "Target.attachToTarget", map[string]any{"targetId": d.page, "flatten": true})
	if err != nil {
		return err
	}
	var attached struct {
		Session string `json:"sessionId"`
	}
	if err := json.Unmarshal(result, &attached); err != nil {
		return err
	}
	if result, err = d.call(attached.Session, "Page.navigate", map[string]any{"url": address}); err != nil {
		return err
	}
	var navigated struct {
		ErrorText string `json:"errorText"`
	}
	if err := json.Unmarshal(result, &navigated); err != nil {
		return err
	}
	if navigated.ErrorText != "" {
		return errors.New("the page cannot be loaded: " + navigated.ErrorText)
	}
	return nil
}

// follow reads until the app's window is closed (true) or the browser has ended.
func (d *devtools) follow() (closed bool) {
	for {
		m, err := d.read()
		if err != nil {
			return false
		}
		var gone target
		if m.Method == "Target.targetDestroyed" && json.Unmarshal(m.Params, &gone) == nil && gone.ID == d.page {
			return true
		}
	}
}

// raise brings the window forward. The answer comes to follow.
func (d *devtools) raise() error {
	_, err := d.send("", "Target.activateTarget", map[string]any{"targetId": d.page})
	return err
}

// call sends a command and reads its answer. Only open calls.
func (d *devtools) call(session, method string, params any) (json.RawMessage, error) {
	id, err := d.send(session, method, params)
	if err != nil {
		return nil, err
	}
	for {
		m, err := d.read()
		if err != nil {
			return nil, err
		}
		if m.ID == id && m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if m.ID == id {
			return m.Result, nil
		}
	}
}

func (d *devtools) send(session, method string, params any) (id int, err error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.id++
	text, err := json.Marshal(message{ID: d.id, Session: session, Method: method, Params: encoded})
	if err != nil {
		return 0, err
	}
	_, err = d.w.Write(append(text, 0))
	return d.id, err
}

// read reads one message, and takes note of it when it tells of a page.
func (d *devtools) read() (message, error) {
	var m message
	text, err := d.frame()
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("the browser sent no DevTools message: %w", err)
	}
	if m.Method != "Target.targetCreated" && m.Method != "Target.targetInfoChanged" {
		return m, nil
	}
	var about struct {
		Target target `json:"targetInfo"`
	}
	if err := json.Unmarshal(m.Params, &about); err != nil {
		return m, fmt.Errorf("the browser sent no DevTools message: %w", err)
	}
	switch t := about.Target; {
	case t.Type != "page" || t.ID == "" || t.ID == d.page:
	case d.page != "":
		d.otherPage(t)
	case strings.HasPrefix(t.URL, placeholder):
		d.page = t.ID
	}
	return m, nil
}

// frame reads the bytes of one message.
func (d *devtools) frame() ([]byte, error) {
	var text []byte
	for {
		part, err := d.r.ReadSlice(0)
		text = append(text, part...)
		switch {
		case err == nil:
			return text[:len(text)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("the browser closed its pipe: %w", err)
		case len(text) > messageLimit:
			return nil, errors.New("the browser sent a message that is too long")
		}
	}
}

// otherPage sends a page that the app opened beside itself to where it belongs: see [decide]. One that is
// still blank is judged when it has its address.
func (d *devtools) otherPage(t target) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	verdict := decide(d.origin, t.URL, true)
	if verdict == load || d.sent[t.ID] {
		return
	}
	d.sent[t.ID] = true
	if verdict == external {
		d.browse(t.URL)
	}
	_, _ = d.send("", "Target.closeTarget", map[string]any{"targetId": t.ID}) // it fails only at the browser's end
}
