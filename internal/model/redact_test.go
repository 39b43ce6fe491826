package model

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
)

func TestRedactor_Forms(t *testing.T) {
	const key, short, password = "Canary.8hTq/3+Jw=Zr6Ym1Nc9", "tiny/key", "proxy-canary-pass"
	t.Setenv("https_proxy", "http://user:"+password+"@localhost:1")
	r := newRedactor(key, short)
	for _, secret := range []string{key, short, password} {
		for _, form := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret)),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
			base64.StdEncoding.EncodeToString([]byte("x:" + secret)), base64.StdEncoding.EncodeToString([]byte("x:" + secret + ":y")),
		} {
			got := r.clean("before " + form + ", after")
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, ", after") || strings.Contains(got, form) || !strings.Contains(got, "[redacted]") {
				t.Errorf("%q became %q", form, got)
			}
		}
	}
	for text, want := range map[string]string{
		"":                            "",
		"short":                       "short",
		"ends in " + key[len(key)-8:]: "ends in [redacted]",
		"the …" + key[4:20] + "… 1":   "the …[redacted] 1",
		key + " and " + key:           "[redacted] and [redacted]",
		"only " + key[:7] + " of it":  "only " + key[:7] + " of it",
		"ends with words that are " + "long enough": "ends with words that are long enough",
	} {
		if got := r.clean(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := newRedactor("", "x", "  ").clean("x is in every text"); got != "x is in every text" {
		t.Errorf("got %q", got)
	}
}

// Whatever a stranger says, the result is bounded, and no part of the key.
func FuzzRedactor(f *testing.F) {
	const key = "Canary.8hTq/3+Jw=Zr6Ym1Nc9"
	f.Add("a "+key[:9]+"…", 3)
	f.Add(key+key[3:], 0)
	r := newRedactor(key)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = min(max(at, 0), len(text))
		got := r.clean(text[:at] + key + text[at:])
		for i := range len(key) - partLength + 1 {
			if strings.Contains(got, key[i:i+partLength]) {
				t.Fatalf("%q holds %q", got, key[i:i+partLength])
			}
		}
		if len(got) > 2*maxDetail {
			t.Fatalf("%d bytes", len(got))
		}
	})
}
