package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanText(t *testing.T) {
	for raw, want := range map[string]string{
		"plain\ttext\n":        "plain\ttext\n",
		"a\r\nb\rc":            "a\nb\nc",
		"\x1b[1;31mred\x1b[0m": "red",
		"\x1b]0;title\x07x":    "x",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b]52;c;never closed\nnext":             "\nnext",
		"\x1bP$q\x1b\\ \u009b31m d":                "  d",
		"\x1b(Bx\x1bc\x1b":                         "x",
		"nul\x00 bell\x07 del\x7f c1\u0085":        "nul bell del c1",
		"\u202eabc\u2066x\u2069":                   "abcx",
		"\xff\xfe\xc3(":                            "\uFFFD(",
		"h€llo 😀 עברית \u200f":                     "h€llo 😀 עברית \u200f",
	} {
		if got := cleanText([]byte(raw)); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func TestEscapeUnwanted(t *testing.T) {
	value := "\u009b31m\u202ex\u0085 h€llo 😀\n"
	raw, err := json.Marshal(map[string]string{value: value})
	if err != nil {
		t.Fatal(err)
	}
	escaped := escapeUnwanted(string(raw))
	var back map[string]string
	if err := json.Unmarshal(escaped, &back); err != nil || back[value] != value || bytes.ContainsFunc(escaped, unwanted) {
		t.Errorf("%q: %v", escaped, err)
	}
}

func FuzzCleanText(f *testing.F) {
	for _, seed := range []string{"\x1b[31mx", "\x1b]0;t", "a\u009b1mb", "\xe2\x82", "\x1b\x1b[[0m", "\r\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := cleanText(raw)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unwanted) {
			t.Errorf("%q became %q", raw, got)
		}
		if again := cleanText([]byte(got)); again != got {
			t.Errorf("cleaning is not stable: %q, %q", got, again)
		}
	})
}

const testNonce = "00112233445566778899aabbccddeeff"

func TestSplitFrames(t *testing.T) {
	marker := frameMarker(testNonce)
	raw := fmt.Sprintf("%[1]sS\nprinted %[1]sV{\"a\":1}\nmore\n\x1e%[2]sVforged\n%[1]sVcut off", marker, strings.Repeat("f", 32))
	text, frames := splitFrames([]byte(raw), marker)
	if want := "printed more\n\x1e" + strings.Repeat("f", 32) + "Vforged\n"; string(text) != want {
		t.Errorf("text %q", text)
	}
	if len(frames) != 2 || find(frames, frameStarted) == nil || string(find(frames, frameValue).payload) != `{"a":1}` || find(frames, frameValue).at != 8 {
		t.Errorf("frames %+v", frames)
	}
}

func FuzzSplitFrames(f *testing.F) {
	marker := string(frameMarker(testNonce))
	for _, seed := range []string{"", "a", marker + "S\n", marker, marker + "\n", "x" + marker + "Vy\nz", "\x1e" + testNonce[:31] + marker} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, cut int) {
		text, frames := splitFrames(raw, []byte(marker))
		if !bytes.Contains(raw, []byte(marker)) && (!bytes.Equal(text, raw) || frames != nil) {
			t.Errorf("%q: %q %v", raw, text, frames)
		}
		for _, frame := range frames {
			if frame.at > len(text) || bytes.Contains(frame.payload, []byte("\n")) {
				t.Errorf("%q: %+v", raw, frame)
			}
		}
		sameHoweverCut(t, raw, cut)
	})
}

// sameHoweverCut feeds a stream in pieces: what is kept and the lines that are
// handed out may not depend on where they are cut.
func sameHoweverCut(t *testing.T, raw []byte, size int) {
	t.Helper()
	feed := func(size int) (kept string, lines []string, returned bool) {
		o := newOutput(1<<20, frameMarker(testNonce), nil, func(error) {}, func(_, line string) { lines = append(lines, line) })
		o.returned = func() { returned = true }
		for rest := raw; len(rest) > 0; {
			n := min(size, len(rest))
			o.stdout().Write(rest[:n])
			rest = rest[n:]
		}
		o.close()
		head, tail := o.out.parts()
		return string(head) + string(tail), lines, returned
	}
	kept, lines, returned := feed(max(1, len(raw)))
	kept2, lines2, returned2 := feed(1 + max(0, size)%64)
	if kept != string(raw) || kept2 != kept || returned != returned2 || strings.Join(lines, "\n") != strings.Join(lines2, "\n") {
		t.Errorf("%q: %q %q %q %q", raw, kept, kept2, lines, lines2)
	}
}

func TestOutput_HeadAndTail(t *testing.T) {
	for _, size := range []int{1, 7, 100, 5000} {
		o := newOutput(1600, nil, nil, func(error) {}, nil)
		text := strings.Repeat("0123456789", 500)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			o.stderr().Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		head, tail := o.err.parts()
		if string(head) != text[:100] || string(tail) != text[4900:] || o.err.dropped != 4800 {
			t.Errorf("size %d: %d %d %d", size, len(head), len(tail), o.err.dropped)
		}
	}
}

func TestOutput_Stops(t *testing.T) {
	stopped := 0
	o := newOutput(800, nil, nil, func(error) { stopped++ }, nil)
	for range 100 {
		o.stdout().Write(bytes.Repeat([]byte("x"), 50))
	}
	if !o.exceeded() || stopped != 1 || o.out.dropped != 5000-700 || len(o.out.first) != 700 {
		t.Error(stopped, o.out.dropped, len(o.out.first))
	}
}

func TestLiner_LongLines(t *testing.T) {
	marker := frameMarker(testNonce)
	for before := longLine - 40; before < longLine+40; before++ {
		var got strings.Builder
		l := &liner{marker: marker, room: 1 << 30, emit: func(line string) { got.WriteString(line) }}
		raw := strings.Repeat("x", before) + string(marker) + `V"value"` + "\nafter\n"
		for rest := raw; rest != ""; {
			n := min(4096, len(rest))
			l.add([]byte(rest[:n]))
			rest = rest[n:]
		}
		l.flush()
		if got.String() != strings.Repeat("x", before)+"after" {
			t.Errorf("%d: %d bytes, %q", before, got.Len(), tail(got.String(), 60))
		}
	}
}
