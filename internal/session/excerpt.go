package session

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// An excerpt has at most this many characters before the word that was found,
// and from it on.
const (
	excerptBefore = 40
	excerptAfter  = 100
)

// excerpt is what stands in text around the first of the words of a query, or
// its beginning when none is seen. It takes one pass: that of SQLite takes time
// that grows with the square of the text.
func excerpt(text, query string) string {
	at := firstWord(text, query)
	from, to := at, at
	for n := 0; n < excerptBefore && from > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	for n := 0; n < excerptAfter && to < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[to:])
		to += size
	}
	cut := text[from:to]
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(text) {
		cut += "…"
	}
	return cut
}

// firstWord returns where the first of the words of a query begins in text, or 0. A
// word is what the index takes for one: letters and digits in a row, without
// case and marks; the last one of the query may be a beginning.
func firstWord(text, query string) int {
	wanted := [][]rune{}
	longest := 0
	tokens(query, len(query), func(_ int, word []rune) bool {
		wanted, longest = append(wanted, slices.Clone(word)), max(longest, len(word))
		return true
	})
	found := 0
	tokens(text, longest+1, func(at int, word []rune) bool {
		for i, w := range wanted {
			last := i == len(wanted)-1 && len(word) > len(w)
			if slices.Equal(word, w) || last && slices.Equal(word[:len(w)], w) {
				found = at
				return false
			}
		}
		return true
	})
	return found
}

// tokens hands on where each word of s begins, and its first runes, at most most
// of them, until yield returns false. The runes are good until yield returns.
func tokens(s string, most int, yield func(at int, word []rune) bool) {
	var word []rune
	start := -1
	for i, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r):
			if start < 0 {
				start = i
			}
			if len(word) < most {
				word = append(word, folded(r))
			}
		case unicode.Is(unicode.Mn, r): // a mark belongs to its letter
		case start >= 0:
			if !yield(start, word) {
				return
			}
			start, word = -1, word[:0]
		}
	}
	if start >= 0 {
		yield(start, word)
	}
}

// folded is r in lower case and without a mark.
func folded(r rune) rune {
	if r >= utf8.RuneSelf {
		parts := norm.NFD.String(string(r))
		letter, size := utf8.DecodeRuneInString(parts)
		if strings.IndexFunc(parts[size:], func(m rune) bool { return !unicode.Is(unicode.Mn, m) }) < 0 {
			r = letter
		}
	}
	return unicode.ToLower(r)
}
