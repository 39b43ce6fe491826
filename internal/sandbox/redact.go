package sandbox

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MinSecret is the length in bytes of the shortest secret: a shorter one could
// not be told from ordinary text.
const MinSecret = 6

var (
	secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	// steering are variables that change what Deno, Node or the system do.
	steering = regexp.MustCompile(`^(?:DENO|NODE|NPM|V8|LD|SSL|OTEL|XDG|LC|TENDRIL)_|_PROXY$|^(?:PATH|HOME|USER|LOGNAME|SHELL|PWD|TMPDIR|TMP|TEMP|LANG|TZ|TERM|NO_COLOR|FORCE_COLOR|DEBUG|JSR_URL|RUST_LOG|RUST_BACKTRACE)$`)
)

// CheckSecretName reports why a secret of this name can be given to no run.
func CheckSecretName(name string) error {
	if !secretName.MatchString(name) {
		return fmt.Errorf("%.80q can be no name of a secret: write capital letters, digits and _, as in GITHUB_TOKEN", name)
	}
	if steering.MatchString(name) {
		return fmt.Errorf("%s is a name that programs give a meaning to; call the secret something else", name)
	}
	return nil
}

// Redactor takes secrets out of texts: as they are, whatever of them is escaped
// as in URLs or JSON, and in Base64 or hexadecimal, also inside of longer texts
// in these. Somebody who takes a secret apart, or encodes it in a way of their
// own, gets past it: what keeps a secret is that it is granted with the hosts
// that it may be sent to. A nil Redactor changes nothing.
type Redactor struct {
	secrets []hidden
	longest int // bytes that the longest form of a secret may have
}

type hidden struct {
	mark    string
	pattern *regexp.Regexp
}

// maxPattern is the length in bytes up to which each character of a secret may be
// escaped in a way of its own.
const maxPattern = 4 << 10

// NewRedactor makes a Redactor of secrets by name; nil for none. Values that are
// shorter than [MinSecret] are left out.
func NewRedactor(secrets map[string]string) *Redactor {
	r := &Redactor{}
	names := slices.SortedFunc(maps.Keys(secrets), func(a, b string) int { // longer ones may hold shorter ones
		if d := len(secrets[b]) - len(secrets[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		value := secrets[name]
		if len(value) < MinSecret {
			continue
		}
		r.secrets = append(r.secrets, hidden{"[secret " + name + "]", regexp.MustCompile(strings.Join(forms(value), "|"))})
		r.longest = max(r.longest, 6*len(value)+8)
	}
	if len(r.secrets) == 0 {
		return nil
	}
	return r
}

// Text is a text without the secrets.
func (r *Redactor) Text(text string) string {
	if r == nil {
		return text
	}
	for _, s := range r.secrets {
		text = s.pattern.ReplaceAllLiteralString(text, s.mark)
	}
	return text
}

// margin is how many bytes at a cut may be the beginning or the end of a secret.
func (r *Redactor) margin() int {
	if r == nil {
		return 0
	}
	return r.longest
}

// forms are regular expressions for the ways to write a value, the longest first.
func forms(value string) []string {
	raw := regexp.QuoteMeta(value)
	if len(value) <= maxPattern {
		raw = escapedForm(value)
	}
	all := []string{"(?i:" + raw + ")", "(?i:" + hexForm(value) + ")"}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			all = append(all, base64Form(encoding, value, shift))
		}
	}
	slices.Sort(all[2:])
	return append(all[:2:2], slices.Compact(all[2:])...)
}

// escapedForm lets each character be as it is or escaped: %41, \u0041, \x41, &#65;
// and the short forms of JSON and HTML.
func escapedForm(value string) string {
	short := map[rune]string{
		'"': `\\+"|&quot;`, '\\': `\\\\+`, '/': `\\+/`, ' ': `\+|%(?:25)*2b`, '\'': `\\+'|&#39;|&apos;`, '&': `&amp;`, '<': `&lt;`, '>': `&gt;`, '\t': `\\+t`,
	}
	var b strings.Builder
	for _, c := range value {
		options := []string{regexp.QuoteMeta(string(c)), percent(c), unicodeEscape(c), fmt.Sprintf("&#(?:%d|x0*%x);", c, c)}
		if c < utf8.RuneSelf {
			options = append(options, fmt.Sprintf(`\\+x%02x`, c))
		}
		if s := short[c]; s != "" {
			options = append(options, s)
		}
		b.WriteString("(?:" + strings.Join(options, "|") + ")")
	}
	return b.String()
}

func percent(c rune) string {
	var b strings.Builder
	for _, x := range []byte(string(c)) {
		fmt.Fprintf(&b, "%%(?:25)*%02x", x) // also escaped more than once
	}
	return b.String()
}

func unicodeEscape(c rune) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune{c}) {
		fmt.Fprintf(&b, `\\+u(?:%04x|\{0*%x\})`, unit, unit)
	}
	return b.String()
}

func hexForm(value string) string {
	digits := hex.EncodeToString([]byte(value))
	if len(value) > maxPattern/2 {
		return digits
	}
	var pairs []string
	for i := 0; i < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, `[ :,-]?(?:0x|\\x)?`)
}

// base64Form is what is always the same of a value in Base64 when so many bytes
// stand before it in its group of three, with the characters at both ends that
// hold a part of it.
func base64Form(encoding *base64.Encoding, value string, shift int) string {
	encoded := encoding.EncodeToString(append(make([]byte, shift), value...))
	start, end := (shift*8+5)/6, (shift+len(value))*8/6
	partly := `[A-Za-z0-9+/_-]?`
	form := regexp.QuoteMeta(encoded[start:end])
	if shift > 0 {
		form = partly + form
	}
	if (shift+len(value))%3 != 0 {
		form += partly
	}
	return form + "={0,2}"
}
