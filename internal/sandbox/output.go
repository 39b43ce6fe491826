package sandbox

import (
	"bytes"
	"sync"
)

// output collects what one run prints. Its two streams share a limit: seven
// eighths are for stdout, and one that writes more is stopped; an eighth is for
// stderr, of which the beginning and the end are kept, so that noise there costs
// neither the run nor the error at its end. Only a run that writes noiseFactor
// times the whole limit to stderr is stopped too.
type output struct {
	mu      sync.Mutex
	out     capture
	err     capture
	limit   int64
	stop    func(cause error) // called with errOutput at most once
	stopped bool

	value    []byte // marker of the frame with the returned value
	returned func() // called when that frame begins, at most once; then nil
}

const noiseFactor = 16

func newOutput(limit int64, marker []byte, redact *Redactor, stop func(error), emit func(stream, line string)) *output {
	o := &output{limit: limit, stop: stop, value: append(marker[:len(marker):len(marker)], frameValue)}
	o.out = capture{head: limit - limit/8, redact: redact}
	o.err = capture{head: limit / 16, tail: limit/8 - limit/16, redact: redact}
	if emit != nil {
		o.out.live = &liner{marker: marker, redact: redact, room: o.out.head, emit: func(line string) { emit("stdout", line) }}
		o.err.live = &liner{marker: marker, redact: redact, room: limit / 8, emit: func(line string) { emit("stderr", line) }}
	}
	return o
}

// stdout and stderr are where the child's pipes are copied to.
func (o *output) stdout() streamWriter { return streamWriter{o, &o.out} }
func (o *output) stderr() streamWriter { return streamWriter{o, &o.err} }

// close ends the live lines: the last ones need no line end.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range []*capture{&o.out, &o.err} {
		if c.live != nil {
			c.live.flush()
			c.live = nil
		}
	}
}

// exceeded says whether the run was stopped for its output.
func (o *output) exceeded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stopped
}

type streamWriter struct {
	o *output
	c *capture
}

// Write takes everything, so that the child's writes never block on us.
func (w streamWriter) Write(p []byte) (int, error) {
	w.o.mu.Lock()
	defer w.o.mu.Unlock()
	seen := len(w.o.out.first)
	w.c.add(p)
	if !w.o.stopped && (w.o.out.dropped > 0 || w.o.err.dropped > noiseFactor*w.o.limit) {
		w.o.stopped = true
		w.o.stop(errOutput)
	}
	if w.o.returned != nil && bytes.Contains(w.o.out.first[max(0, seen-len(w.o.value)):], w.o.value) {
		w.o.returned()
		w.o.returned = nil
	}
	return len(p), nil
}

// capture keeps the first head and the last tail bytes of a stream.
type capture struct {
	head, tail int64
	first      []byte
	last       []byte // a ring once it is full, begin is its start
	begin      int
	dropped    int64
	live       *liner
	redact     *Redactor
}

func (c *capture) add(p []byte) {
	if c.live != nil {
		c.live.add(p)
	}
	if room := c.head - int64(len(c.first)); room > 0 {
		n := min(room, int64(len(p)))
		c.first = append(c.first, p[:n]...)
		p = p[n:]
	}
	if over := int64(len(p)) - c.tail; over > 0 {
		c.dropped += over + int64(len(c.last))
		c.last, c.begin = c.last[:0], 0
		p = p[over:]
	}
	if room := c.tail - int64(len(c.last)); room > 0 {
		n := min(room, int64(len(p)))
		c.last = append(c.last, p[:n]...)
		p = p[n:]
	}
	c.dropped += int64(len(p))
	for len(p) > 0 {
		n := copy(c.last[c.begin:], p)
		c.begin = (c.begin + n) % len(c.last)
		p = p[n:]
	}
}

// parts returns what was kept, whole characters only: all of it, or the
// beginning and the end when something between them was dropped.
func (c *capture) parts() (head, tail []byte) {
	last := append(append([]byte(nil), c.last[c.begin:]...), c.last[:c.begin]...)
	if c.dropped == 0 {
		return append(c.first[:len(c.first):len(c.first)], last...), nil
	}
	first := c.first
	if c.redact != nil { // what is left of a secret at a cut could not be told from text
		margin := c.redact.margin()
		first, last = []byte(c.redact.Text(string(first))), []byte(c.redact.Text(string(last)))
		first, last = first[:max(0, len(first)-margin)], last[min(margin, len(last)):]
	}
	return wholeRunes(first), wholeRunes(afterCut(last))
}

// liner hands out lines while they are printed, without frames.
type liner struct {
	marker []byte
	redact *Redactor
	emit   func(line string)
	room   int64 // bytes that may still be handed out
	buf    []byte
	skip   bool // inside of a frame
	over   bool // what follows is the account of a failure, which the result tells
}

// longLine is how much of a line without an end is held back.
const longLine = 64 << 10

func (l *liner) add(p []byte) {
	for len(p) > 0 && l.room >= 0 {
		part, rest, whole := bytes.Cut(p, []byte("\n"))
		if !l.skip {
			l.buf = append(l.buf, part...)
		}
		switch {
		case whole:
			l.end()
		case len(l.buf) > longLine:
			l.spill()
		}
		p = rest
	}
}

// end hands out the line in buf.
func (l *liner) end() {
	over := l.over || lastWords(l.buf)
	line, frame := l.take(len(l.buf))
	if !l.skip && !over && (len(line) > 0 || !frame) {
		l.send(line)
	}
	l.skip, l.over = false, l.over || over
}

// spill hands out the beginning of a very long line, and keeps what could be
// the beginning of a frame or of a character.
func (l *liner) spill() {
	held := max(len(l.marker), l.redact.margin())
	if held >= len(l.buf) {
		return
	}
	if l.redact != nil && !bytes.Contains(l.buf, l.marker) {
		l.buf = []byte(l.redact.Text(string(l.buf)))
		held = min(held, len(l.buf))
	}
	line, frame := l.take(len(wholeRunes(l.buf[:len(l.buf)-held])))
	if len(line) > 0 {
		l.send(line)
	}
	l.skip = frame
}

// take removes the first n bytes of buf, or all of it when a frame begins in
// it, and returns what stands before that frame.
func (l *liner) take(n int) (line []byte, frame bool) {
	if at := bytes.Index(l.buf, l.marker); at >= 0 {
		l.over = l.over || bytes.HasPrefix(l.buf[at+len(l.marker):], []byte{frameError})
		line, l.buf = l.buf[:at], nil
		return line, true
	}
	line, l.buf = l.buf[:n:n], append([]byte(nil), l.buf[n:]...)
	return line, false
}

// lastWords reports whether a line begins what Deno or its engine say of a
// failure.
func lastWords(line []byte) bool {
	for _, start := range []string{"error: Uncaught ", "error: " + neverResolved, "<--- Last few GCs --->", "# Fatal "} {
		if bytes.HasPrefix(line, []byte(start)) {
			return true
		}
	}
	return false
}

func (l *liner) send(line []byte) {
	if l.room -= int64(len(line)) + 1; l.room >= 0 {
		l.emit(l.redact.Text(cleanText(line)))
	}
}

func (l *liner) flush() {
	if !l.skip && len(l.buf) > 0 && l.room >= 0 {
		l.end()
	}
}
