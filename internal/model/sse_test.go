package model

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readEvents returns each event as "name|data" and how the stream ended.
func readEvents(r io.Reader) ([]string, error) {
	var all []string
	reader := newSSEReader(r)
	for {
		ev, err := reader.next()
		if err != nil {
			return all, err
		}
		all = append(all, ev.name+"|"+string(ev.data))
	}
}

func TestSSE_Forms(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"plain", "data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		{"no space", "event:x\ndata:a\n\n", []string{"x|a"}},
		{"one space only", "data:  a\n\n", []string{"| a"}},
		{"CRLF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"x|a", "|b"}},
		{"CR", "event: x\rdata: a\r\rdata: b\r\r", []string{"x|a", "|b"}},
		{"mixed", "data: a\r\n\rdata: b\n\r\n", []string{"|a", "|b"}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"|a"}},
		{"a mark later is data", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"|a"}},
		{"comments and other fields", ": hi\n\nid: 1\nretry: 5\nother\n:\ndata: a\nid\n\n", []string{"|a"}},
		{"several data lines", "data: a\ndata\ndata: b\n\n", []string{"|a\n\nb"}},
		{"no data", "event: x\n\ndata: a\n\n", []string{"|a"}},
		{"the last name counts", "event: x\nevent: y\ndata: a\n\n", []string{"y|a"}},
		{"no empty line at the end", "data: a\n\ndata: b\n", []string{"|a", "|b"}},
		{"no newline at the end", "data: a", []string{"|a"}},
		{"colons", "data: {\"a\": \"b:c\"}\n\n", []string{`|{"a": "b:c"}`}},
		{"empty data", "data\n\ndata:\n\n", []string{"|", "|"}},
		{"nothing", "", nil},
		{"text", "<html>\n\n</html>", nil},
	}
	for _, tt := range tests {
		for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in))} {
			got, err := readEvents(r)
			if err != io.EOF || strings.Join(got, "\x00") != strings.Join(tt.want, "\x00") {
				t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
			}
		}
	}
}

// TestSSE_BrokenConnection does not complete an event that a connection broke in.
func TestSSE_BrokenConnection(t *testing.T) {
	broken := errors.New("reset")
	got, err := readEvents(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSSE_Bounds ends endless lines, events and streams.
func TestSSE_Bounds(t *testing.T) {
	for _, unit := range []string{"x", "data: " + strings.Repeat("x", 4000) + "\n", ": " + strings.Repeat("x", 4000) + "\n\n"} {
		reader := newSSEReader(&endless{unit: []byte(unit)})
		reader.maxEvent, reader.maxTotal = 1<<16, 1<<20
		if _, err := reader.next(); !errors.Is(err, errReplyTooLong) {
			t.Errorf("%.10q: %v", unit, err)
		}
	}
}

// endless repeats unit.
type endless struct {
	unit []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.unit[e.at:])
	e.at = (e.at + n) % len(e.unit)
	return n, nil
}

// FuzzSSE wants the same events however the bytes are cut, and sees that what
// is written as events is read as such.
func FuzzSSE(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "\xef\xbb\xbf:c\r\n\r\nevent:x\rdata:y\r\r", "data", "\r\n\r", "data: a\r"} {
		f.Add([]byte(s), "name", "data")
	}
	f.Fuzz(func(t *testing.T, raw []byte, name, data string) {
		whole, err := readEvents(bytes.NewReader(raw))
		single, singleErr := readEvents(iotest.OneByteReader(bytes.NewReader(raw)))
		if err != io.EOF || singleErr != io.EOF || strings.Join(whole, "\x00") != strings.Join(single, "\x00") {
			t.Errorf("%q, %v; byte by byte %q, %v", whole, err, single, singleErr)
		}
		if strings.ContainsAny(name+data, "\r\n") {
			return
		}
		got, _ := readEvents(strings.NewReader("event: " + name + "\ndata: " + data + "\n\n"))
		if len(got) != 1 || got[0] != name+"|"+data {
			t.Errorf("%q of %q, %q", got, name, data)
		}
	})
}
