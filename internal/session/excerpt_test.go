package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct{ text, query, want string }{
		"all of a short one":     {"sum the Expenses of märz", "expens", "sum the Expenses of märz"},
		"case and marks":         {strings.Repeat("a ", 100) + "MA\u0308RZ", "marz", "…" + strings.Repeat("a ", 20) + "MA\u0308RZ"},
		"marks of the query":     {strings.Repeat("a ", 100) + "Marz", "märz", "…" + strings.Repeat("a ", 20) + "Marz"},
		"only the last begins":   {strings.Repeat("ab ", 100) + "cd", "a cd", "…" + strings.Repeat(" ab", 13) + " cd"},
		"cut at both ends":       {strings.Repeat("日", 60) + " needle" + strings.Repeat(" 本", 60), "needle", "…" + strings.Repeat("日", 39) + " needle" + strings.Repeat(" 本", 47) + "…"},
		"no spaces":              {long, "xx", long[:excerptAfter] + "…"},
		"no spaces, in the word": {long + "-" + long, "xxxx", long[:excerptAfter] + "…"},
		"syntax":                 {`100% of "odd" text_here`, `"odd" text_h`, `100% of "odd" text_here`},
		"hangul is no mark":      {"가 각", "각", "가 각"},
		"nothing is found":       {"a b", "*", "a b"},
		"empty":                  {"", "a", ""},
		"broken":                 {"\xff\xfe needle", "needle", "\xff\xfe needle"},
	} {
		if got := excerpt(c.text, c.query); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("sum the Expenses of märz", "expens")
	f.Add("\xff\u0308가", "가 \"")
	f.Fuzz(func(t *testing.T, text, query string) {
		got := excerpt(text, query)
		if n := utf8.RuneCountInString(got); n > excerptBefore+excerptAfter+2 {
			t.Errorf("%d characters", n)
		}
		if !strings.Contains(text, strings.TrimSuffix(strings.TrimPrefix(got, "…"), "…")) && !strings.Contains(text, got) {
			t.Errorf("%q is not in %q", got, text)
		}
	})
}

// One long message is found as soon as a short one, with the word in every line
// of it.
func TestStore_SearchInAMessageOfMegabytes(t *testing.T) {
	s := open(t)
	session := create(t, s)
	text := strings.Repeat("the expenses of march were the same as those of april\n", 5<<20/54)
	appendAll(t, session, new(script).add(prompt("write much"), answer(text), end()).out)
	for _, query := range []string{"expenses", "e", "the expenses of april march"} {
		list, _, err := s.List(t.Context(), Query{Text: query})
		if err != nil || len(list) != 1 || utf8.RuneCountInString(list[0].Match) > excerptBefore+excerptAfter+2 || !strings.Contains(list[0].Match, "expenses") {
			t.Errorf("%q: %v, %v", query, list, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.List(ctx, Query{Text: "expenses"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func BenchmarkExcerpt(b *testing.B) {
	text := strings.Repeat("die Ausgaben im März waren höher\n", 5<<20/36) + "needle"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		excerpt(text, "needle")
	}
}
