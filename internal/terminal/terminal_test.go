package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain text":         {"Grüße, 世界 😀\n\tend", "Grüße, 世界 😀\n\tend"},
		"emoji joined":       {"👩\u200d💻 ❤\ufe0f", "👩\u200d💻 ❤\ufe0f"},
		"persian joiner":     {"می\u200cخواهم", "می\u200cخواهم"},
		"replacement char":   {"a\ufffdb", "a\ufffdb"},
		"windows lines":      {"a\r\nb\r\n", "a\nb\n"},
		"overprinted line":   {"safe\rfake", "safefake"},
		"nul and bell":       {"a\x00b\x07c", "abc"},
		"backspaces":         {"rm\b\bls", "rmls"},
		"delete":             {"a\x7fb", "ab"},
		"colours":            {"\x1b[1;31mred\x1b[0m", "red"},
		"cursor and erase":   {"a\x1b[2J\x1b[1;1Hb\x1b[?25l", "ab"},
		"title":              {"\x1b]0;t\x07x", "]0;tx"},
		"clipboard":          {"\x1b]52;c;aGk=\x1b\\x", `]52;c;aGk=\x`},
		"open string":        {"a\x1b]0;hides all that follows", "a]0;hides all that follows"},
		"reset":              {"a\x1bcb", "acb"},
		"escape at the end":  {"a\x1b", "a"},
		"sequence cut":       {"a\x1b[31", "a[31"},
		"sequence broken":    {"a\x1b[3é", "a[3é"},
		"sequence too long":  {"\x1b[" + strings.Repeat("1;", 100) + "mx", "[" + strings.Repeat("1;", 100) + "mx"},
		"escape hidden":      {"\x1b\x1b[0m[31mx", "[31mx"},
		"c1 as characters":   {"a\u009b31mb\u009dc\u0085d", "a31mbcd"},
		"c1 as bytes":        {"a\x9b31mb", "a\ufffd31mb"},
		"bidi override":      {"user\u202e gpj.exe\u2066x\u2069\u200f\u061c", "user gpj.exex"},
		"separators":         {"a\u2028b\u2029c", "a\nb\nc"},
		"zero width":         {"a\u200bb\u2060c\ufeffd\u00ade", "abcde"},
		"tags":               {"hi\U000e0041\U000e0042\U000e007f", "hi"},
		"invalid bytes":      {"a\xff\xc3(b\xe2\x82", "a\ufffd\ufffd(b\ufffd\ufffd"},
		"joined by removal":  {"\xe2\x1b[0m\x80\xae", "\ufffd\ufffd\ufffd"},
		"surrogates encoded": {"\xed\xa0\xbd", "\ufffd\ufffd\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Clean(c.in); got != c.want {
				t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestLine_StaysOnOneLine(t *testing.T) {
	got := Line("a\r\nb\tc\u2028d\x1b[2Ke\x0bf")
	if want := "a b c def"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriter_SplitAnywhere(t *testing.T) {
	const in = "é😀\x1b[1;31mred\x1b[0m \u202e\u2028\r\nend\x1b]0;t\x07\xff\x1b"
	want := Clean(in)
	for size := 1; size <= len(in); size++ {
		var out bytes.Buffer
		w := NewWriter(&out)
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if wrote, err := w.Write([]byte(rest[:n])); wrote != n || err != nil {
				t.Fatalf("Write = %d, %v; want %d", wrote, err, n)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, out.String(), want)
		}
	}
}

func TestWriter_HoldsBackLittle(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	for range 1000 {
		if _, err := w.Write([]byte("\x1b[1;1;1;1;1;1;1;1")); err != nil {
			t.Fatal(err)
		}
		if len(w.held) > maxSequence {
			t.Fatalf("holds back %d bytes", len(w.held))
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestWriter_PassesErrorsOn(t *testing.T) {
	w := NewWriter(brokenWriter{})
	if _, err := w.Write([]byte("a")); err == nil {
		t.Error("Write hides the error")
	}
	if err := w.Flush(); err == nil {
		t.Error("Flush hides the error")
	}
}

func TestEscapeJSON(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing to do": {`{"a":"é😀\u001b"}`, `{"a":"é😀\u001b"}`},
		"separators":    {"\"a\u2028b\u2029\"", `"a\u2028b\u2029"`},
		"c1 and delete": {"\"\u009b\u007f\u0085\"", `"\u009b\u007f\u0085"`},
		"bidi":          {"\"\u202e\u2066\u200f\"", `"\u202e\u2066\u200f"`},
		"tags":          {"\"\U000e0041\"", `"\udb40\udc41"`},
		"keys":          {"{\"\u202e\":1}", `{"\u202e":1}`},
		"invalid":       {"\"\xff\"", `"\ufffd"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(EscapeJSON([]byte(c.in))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestColorEnabled(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		tty  bool
		want bool
	}{
		{nil, true, true},
		{nil, false, false},
		{map[string]string{"NO_COLOR": "1"}, true, false},
		{map[string]string{"TERM": "dumb"}, true, false},
		{map[string]string{"TERM": "xterm-256color"}, true, true},
		{map[string]string{"TERM": "xterm-256color"}, false, false},
	} {
		if got := ColorEnabled(func(key string) string { return c.env[key] }, c.tty); got != c.want {
			t.Errorf("env %v, tty %t: got %t", c.env, c.tty, got)
		}
	}
}

func TestTTY_AFileIsNone(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if IsTTY(f) || Width(f) != defaultWidth {
		t.Errorf("IsTTY %t, Width %d", IsTTY(f), Width(f))
	}
}

// checkShown fails when s holds what must never reach a terminal. It is written
// apart from the code that it checks.
func checkShown(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("invalid UTF-8: %q", s)
	}
	for _, r := range s {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 ||
			strings.ContainsRune("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r) {
			t.Fatalf("%U in %q", r, s)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "é😀", "\x1b[31mred\x1b[0m", "\x1b]0;t\x07", "\u202e\u2028\r\n", "\xff\xe2\x80", "\x1b\x1b[["} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) {
		got := Clean(s)
		checkShown(t, got)
		if again := Clean(got); again != got {
			t.Fatalf("not stable: %q, then %q", got, again)
		}
		if len(s) == 0 {
			return
		}
		cut = (cut%len(s) + len(s)) % len(s)
		var out bytes.Buffer
		w := NewWriter(&out)
		_, _ = w.Write([]byte(s[:cut])) // a bytes.Buffer never fails
		_, _ = w.Write([]byte(s[cut:]))
		_ = w.Flush()
		if out.String() != got {
			t.Fatalf("cut at %d: %q, want %q", cut, out.String(), got)
		}
	})
}

func FuzzEscapeJSON(f *testing.F) {
	for _, s := range []string{`{"a":1}`, "\"\u2028\u202e\"", "[\"\xff\", \"\U000e0041\"]", "{\"\u009b\":\"\\u2028\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		got := EscapeJSON(line)
		if !bytes.Equal(before, line) {
			t.Fatal("changed its input")
		}
		if !json.Valid(line) {
			return
		}
		checkShown(t, strings.ReplaceAll(string(got), "\r", "")) // white space between tokens
		var want, have any
		if json.Unmarshal(line, &want) != nil {
			return // such as a number out of range
		}
		if err := json.Unmarshal(got, &have); err != nil || !reflect.DeepEqual(want, have) {
			t.Fatalf("%q decodes to %v (%v), want %v", got, have, err, want)
		}
	})
}
