package terminal

import (
	"strings"
	"testing"
)

func TestTyped(t *testing.T) {
	for raw, want := range map[string]string{
		"hello": "hello", "one\rtwo\n\r": "one\ntwo", "\r": "", "": "", "wolr\x7f\x7frld": "world", "日\x7fü\b": "", "\x7f\x7fa": "a",
		"one\rtwo\x15three": "one\nthree", "\x15": "", "a\x1b[A\x1b[1;5Db\x1bOPc\x1b": "abc", "\x1b[200~pasted\x1b[201~": "pasted",
		"\x04\x00\x1a": "", "\x1bx": "x", "\x1bO": "", "\xffa": "\ufffda", "a\u202eb": "ab",
	} {
		if got := Typed([]byte(raw)); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

func FuzzTyped(f *testing.F) {
	f.Add([]byte("a\x1b[A\x7f\x15\r\x1bO\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got := Typed(raw); Clean(got) != got || strings.HasSuffix(got, "\n") {
			t.Errorf("%q: %q", raw, got)
		}
	})
}
