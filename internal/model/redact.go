package model

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"regexp"
	"strings"
	"unicode"
)

// maxDetail is how many bytes of a provider's own words go into an error.
const maxDetail = 400

// credentialLike matches what is a credential by its form: the user part of a
// URL, a bearer token, a key with the usual prefix.
var credentialLike = regexp.MustCompile(`(?i)(://)[^/\s@]*(:[^\s@]*)?@|\b(bearer\s+)[^\s"',]+|\b(sk|pk|rk)-[a-z0-9*_.-]{6,}`)

// redactor removes credentials from text.
type redactor struct {
	short []string            // forms of secrets that are looked for as a whole
	parts map[string]struct{} // every run of partLength bytes of a form of the others
}

const (
	// shortest is the length from which a secret is looked for: a placeholder such
	// as "x" is none, and stands in every text.
	shortest = 6
	// splits is the length from which parts of a secret are looked for, too:
	// providers echo keys that are masked.
	splits     = 12
	partLength = 8
	// looked is how many bytes of a secret are looked for.
	looked = 1024
)

// newRedactor knows secrets, and the passwords of proxies, exactly.
func newRedactor(secrets ...string) redactor {
	r := redactor{parts: make(map[string]struct{})}
	for _, secret := range append(proxyPasswords(), secrets...) {
		secret = strings.TrimSpace(secret)
		secret = secret[:min(len(secret), looked)]
		for _, form := range formsOf(secret) {
			switch {
			case len(secret) < shortest || len(form) < shortest:
			case len(secret) < splits:
				r.short = append(r.short, form)
			default:
				for i := range len(form) - partLength + 1 {
					r.parts[form[i:i+partLength]] = struct{}{}
				}
			}
		}
	}
	return r
}

// formsOf are the ways in which a text may stand in another one: as it is, in a
// URL, in hexadecimal digits, and in base64, alone or behind something.
func formsOf(s string) []string {
	forms := []string{s, url.QueryEscape(s), url.PathEscape(s), hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s)))}
	for _, before := range []string{"", " ", "  "} {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			whole := encoding.EncodeToString([]byte(before + s))
			from, to := (8*len(before)+5)/6, (8*len(before+s))/6 // characters that s alone decides
			forms = append(forms, whole[from:max(from, to)])
		}
	}
	return forms
}

// proxyPasswords are the passwords in the addresses of proxies.
func proxyPasswords() []string {
	var passwords []string
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		passwords = append(passwords, urlPassword(os.Getenv(name)))
	}
	return passwords
}

// clean makes text of a stranger fit for an error message: one paragraph of
// valid UTF-8 without control characters, bounded, and without credentials.
func (r redactor) clean(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), separates), " ")
	for _, secret := range r.short {
		s = strings.ReplaceAll(s, secret, "[redacted]")
	}
	s = r.withoutParts(s)
	s = credentialLike.ReplaceAllString(s, "$1$3[redacted]")
	return shorten(s, maxDetail)
}

// separates reports whether c is white space or would drive a terminal.
func separates(c rune) bool {
	return unicode.IsSpace(c) || unicode.IsControl(c) || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp)
}

// withoutParts removes what begins with a part of a secret, up to where a word
// ends.
func (r redactor) withoutParts(s string) string {
	var clean strings.Builder
	kept := 0
	for i := 0; i+partLength <= len(s); i++ {
		if _, ok := r.parts[s[i:i+partLength]]; !ok {
			continue
		}
		clean.WriteString(s[kept:i] + "[redacted]")
		for kept = i + partLength; kept < len(s) && !strings.ContainsRune(" \"',;)<>", rune(s[kept])); kept++ {
		}
		i = kept - 1
	}
	return clean.String() + s[kept:]
}
