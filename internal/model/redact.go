package model

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxDetail is how many bytes of a provider's own words go into an error.
const maxDetail = 400

// credentialLike matches what is a credential by its form: the user part of a
// URL, a bearer token, a key with the usual prefix.
var credentialLike = regexp.MustCompile(`(?i)(://)[^/\s@]*(:[^\s@]*)?@|\b(bearer\s+)[^\s"',]+|\b(sk|pk|rk)-[a-z0-9*_.-]{6,}`)

// redactor removes credentials from text.
type redactor struct{ secrets []string }

// shortest is the length from which a secret is looked for: a placeholder such as
// "x" is none, and stands in every text.
const shortest = 6

// newRedactor knows secrets exactly.
func newRedactor(secrets ...string) redactor {
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < shortest })
	return redactor{secrets}
}

// clean makes text of a stranger fit for an error message: one paragraph of
// valid UTF-8 without control characters, bounded, and without credentials.
func (r redactor) clean(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), separates), " ")
	for _, secret := range r.secrets {
		s = redactPrefix(s, secret)
	}
	s = credentialLike.ReplaceAllString(s, "$1$3[redacted]")
	return shorten(s, maxDetail)
}

// separates reports whether c is white space or would drive a terminal.
func separates(c rune) bool {
	return unicode.IsSpace(c) || unicode.IsControl(c) || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp)
}

// redactPrefix removes secret from s, also where only its beginning is left,
// as in the masked keys that providers echo.
func redactPrefix(s, secret string) string {
	s = strings.ReplaceAll(s, secret, "[redacted]")
	if len(secret) < 12 {
		return s
	}
	start := secret[:8]
	for {
		at := strings.Index(s, start)
		if at < 0 {
			return s
		}
		end := at
		for end < len(s) && !strings.ContainsRune(" \"',;)<>", rune(s[end])) {
			end++
		}
		s = s[:at] + "[redacted]" + s[end:]
	}
}
