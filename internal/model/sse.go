package model

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Bounds of one reply in bytes, so that a server that never stops cannot fill
// the memory.
const (
	maxEventBytes = 16 << 20
	maxReplyBytes = 256 << 20
	prefixBytes   = 8 << 10
)

var errReplyTooLong = errors.New("the reply is longer than any real one")

// event is one event of a stream. name is "" when the stream gave none; data
// holds its data lines, joined by newlines, or its payload. open is set when the
// stream ended inside of it.
type event struct {
	name string
	data []byte
	open bool
}

// eventReader splits the body of a reply into events.
type eventReader interface {
	// next returns the next event that has data, and [io.EOF] at a clean end.
	// The data is valid until the next call.
	next() (event, error)
	// opening returns how the body began. ok is false once an event was found.
	opening() (prefix []byte, ok bool)
}

// sseReader reads server-sent events as the HTML standard defines them: lines
// end in LF, CR or CRLF, a byte order mark and comments are skipped, the space
// after the colon is optional, unknown fields are ignored. It differs in one
// point: an event is also complete when the stream ends cleanly after it
// without the empty line.
type sseReader struct {
	src    *bufio.Reader
	line   []byte
	prefix []byte // the start of the stream until the first event
	total  int
	// Bounds in bytes of one event and of the whole stream.
	maxEvent, maxTotal int

	afterCR bool // the last line ended in CR: a LF directly after it belongs to it
	events  int
}

func newSSEReader(r io.Reader) *sseReader {
	return &sseReader{src: bufio.NewReader(r), maxEvent: maxEventBytes, maxTotal: maxReplyBytes}
}

func (r *sseReader) opening() ([]byte, bool) { return r.prefix, r.events == 0 }

// next implements eventReader.
func (r *sseReader) next() (event, error) {
	var ev event
	hasData := false
	for {
		line, err := r.readLine()
		if err != nil {
			if err == io.EOF && hasData {
				ev.open = true
				return r.found(ev)
			}
			return event{}, err
		}
		if len(line) == 0 {
			if hasData {
				return r.found(ev)
			}
			ev = event{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			ev.name = string(value)
		case "data":
			if hasData {
				ev.data = append(ev.data, '\n')
			}
			ev.data = append(ev.data, value...)
			hasData = true
			if len(ev.data) > r.maxEvent {
				return event{}, errReplyTooLong
			}
		}
	}
}

func (r *sseReader) found(ev event) (event, error) {
	r.events++
	r.prefix = nil
	return ev, nil
}

// readLine returns a line without its end. The last line may lack one: it comes
// with a nil error, and io.EOF follows.
func (r *sseReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		buffered, err := r.fill()
		if err != nil {
			if err == io.EOF && len(r.line) > 0 {
				return r.withoutBOM(), nil
			}
			return nil, err
		}
		if r.afterCR && buffered[0] == '\n' {
			r.consume(buffered[:1])
			r.afterCR = false
			continue
		}
		r.afterCR = false
		end := lineEnd(buffered)
		r.line = append(r.line, buffered[:end]...)
		whole := end < len(buffered)
		if whole {
			r.afterCR = buffered[end] == '\r'
			end++
		}
		r.consume(buffered[:end])
		if r.total > r.maxTotal || len(r.line) > r.maxEvent {
			return nil, errReplyTooLong
		}
		if whole {
			return r.withoutBOM(), nil
		}
	}
}

// fill returns what is buffered, at least one byte.
func (r *sseReader) fill() ([]byte, error) {
	if r.src.Buffered() == 0 {
		if _, err := r.src.Peek(1); err != nil {
			return nil, err
		}
	}
	return r.src.Peek(r.src.Buffered())
}

// consume takes the bytes that are buffered first.
func (r *sseReader) consume(p []byte) {
	r.total += len(p)
	if r.events == 0 && len(r.prefix) < prefixBytes {
		r.prefix = append(r.prefix, p[:min(len(p), prefixBytes-len(r.prefix))]...)
	}
	_, _ = r.src.Discard(len(p)) // it is buffered
}

// lineEnd is the index of the first LF or CR, or the length of p.
func lineEnd(p []byte) int {
	end := len(p)
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		end = i
	}
	if i := bytes.IndexByte(p[:end], '\r'); i >= 0 {
		end = i
	}
	return end
}

// withoutBOM drops the byte order mark of the first line.
func (r *sseReader) withoutBOM() []byte {
	const bom = "\xef\xbb\xbf"
	if r.total <= len(r.line)+1 {
		return bytes.TrimPrefix(r.line, []byte(bom))
	}
	return r.line
}
