package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tendril-agent/tendril/internal/terminal"
)

// statusLine writes lines of status. On a terminal it also keeps one line alive
// that names what is waited for, with the seconds.
type statusLine struct {
	w    io.Writer
	live bool

	mu    sync.Mutex
	what  string
	since time.Time
	shown bool
	held  bool // a question is on the screen
	stop  chan struct{}
	done  chan struct{}
}

// newStatusLine starts a status line; close ends it.
func newStatusLine(w io.Writer, live bool) *statusLine {
	s := &statusLine{w: w, live: live}
	if live {
		s.stop, s.done = make(chan struct{}), make(chan struct{})
		go s.tick()
	}
	return s
}

func (s *statusLine) tick() {
	defer close(s.done)
	ticker := time.NewTicker(time.Second / 4)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		}
	}
}

// draw needs s.mu. Short waits are not worth a line.
func (s *statusLine) draw() {
	waited := time.Since(s.since)
	if s.held || s.what == "" || waited < time.Second/2 {
		return
	}
	fmt.Fprintf(s.w, "\r\x1b[K… %s (%d s)", clip(terminal.Line(s.what), 60), int(waited.Seconds()))
	s.shown = true
}

func (s *statusLine) erase() {
	if s.shown {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.shown = false
	}
}

// wait names what is waited for from now on.
func (s *statusLine) wait(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what != s.what {
		s.what, s.since = what, time.Now()
	}
}

// clear ends the waiting.
func (s *statusLine) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = ""
	s.erase()
}

// hold keeps the screen free for a question until release.
func (s *statusLine) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.held = true
}

func (s *statusLine) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
}

// print writes one line.
func (s *statusLine) print(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintln(s.w, line)
}

func (s *statusLine) close() {
	s.clear()
	if s.live {
		close(s.stop)
		<-s.done
	}
}

// style colours the marks of status lines, or leaves them plain.
type style struct{ color bool }

func (s style) paint(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// The marks are one column wide and readable without colour.
func (s style) ok(m string) string   { return s.paint("32", mark(m)) }
func (s style) fail(m string) string { return s.paint("31", mark(m)) }
func (s style) warn(m string) string { return s.paint("33", mark(m)) }
func (s style) run(m string) string  { return s.paint("34", mark(m)) }
func (s style) dim(m string) string  { return s.paint("2", mark(m)) }

func (s style) state(state string) string {
	switch state {
	case "passed":
		return s.ok("v")
	case "failed":
		return s.fail("x")
	case "warned":
		return s.warn("!")
	}
	return s.dim("-")
}

func mark(m string) string {
	switch m {
	case "v":
		return "✓"
	case "x":
		return "✗"
	case ">":
		return "▸"
	case "=":
		return "·"
	}
	return m
}
