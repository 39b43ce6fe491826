package config

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// reader turns a document into typed settings. It goes on after a problem, so
// that a person learns of all of them at once.
type reader struct {
	problems []Problem
	warnings []Warning
	known    []string // the paths of all settings that there are
}

// section is one object of the settings while it is read. What is missing,
// null or of the wrong kind reads as the zero value.
type section struct {
	*reader
	path string
	obj  *object
	keys []string // the keys that were asked for
}

func (s *section) fail(key, format string, args ...any) {
	s.problems = append(s.problems, Problem{Path: childPath(s.path, key), Reason: fmt.Sprintf(format, args...)})
}

func (s *section) warn(key, format string, args ...any) {
	s.warnings = append(s.warnings, Warning{Path: childPath(s.path, key), Text: fmt.Sprintf(format, args...)})
}

// member returns what is at key, or nil, and remembers that key is a setting.
func (s *section) member(key string) *member {
	s.keys = append(s.keys, key)
	s.known = append(s.known, childPath(s.path, key))
	if m := s.obj.find(key); !m.isNull() {
		return m
	}
	return nil
}

// section returns the object at key.
func (s *section) section(key string) *section {
	m := s.member(key)
	if m != nil && m.obj == nil {
		s.fail(key, "must be an object, not %s", kindOf(m.raw))
	}
	sub := &section{reader: s.reader, path: childPath(s.path, key), obj: &object{}}
	if m != nil && m.obj != nil {
		sub.obj = m.obj
	}
	return sub
}

// decode reads the value at key into v, and reports whether that worked.
func (s *section) decode(key, want string, v any) bool {
	m := s.member(key)
	if m == nil {
		return false
	}
	if m.obj != nil {
		s.fail(key, "must be %s, not an object", want)
		return false
	}
	if json.Unmarshal(m.raw, v) == nil {
		return true
	}
	if kind := kindOf(m.raw); kind != want {
		s.fail(key, "must be %s, not %s", want, kind)
	} else {
		s.fail(key, "is out of range")
	}
	return false
}

// text reads a text without control characters. An empty one counts as not set.
func (s *section) text(key string) string {
	var v string
	if !s.decode(key, "a text", &v) {
		return ""
	}
	if reason := badText(v); reason != "" {
		s.fail(key, "%s", reason)
		return ""
	}
	return v
}

func badText(v string) string {
	switch {
	case strings.ContainsFunc(v, invisible):
		return "must not hold control characters"
	case v != "" && strings.TrimSpace(v) == "":
		return "must not be blank"
	}
	return ""
}

// invisible reports whether r acts on text instead of being seen. The joiners
// of scripts and emoji are welcome.
func invisible(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// choice reads one of some words.
func (s *section) choice(key string, words ...string) string {
	v := s.text(key)
	if v != "" && !slices.Contains(words, v) {
		s.fail(key, "%q is not known; choose one of %s", v, strings.Join(words, ", "))
		return ""
	}
	return v
}

// positive reads a whole number from 1 to 2147483647.
func (s *section) positive(key string) int {
	const want = "a whole number greater than 0"
	var raw json.RawMessage
	if !s.decode(key, want, &raw) {
		return 0
	}
	v, err := strconv.ParseInt(string(raw), 10, 32)
	if err == nil && v > 0 {
		return int(v)
	}
	shown := kindOf(raw)
	if shown == "a number" {
		shown = string(raw)
	}
	s.fail(key, "must be %s and at most %d, not %s", want, math.MaxInt32, shown)
	return 0
}

// amount reads a number of dollars that is greater than 0.
func (s *section) amount(key string) float64 {
	v, ok := s.dollars(key)
	if ok && v == 0 {
		s.fail(key, "must be greater than 0; remove it for no limit")
	}
	return v
}

// price reads a number of dollars; nil means that there is none.
func (s *section) price(key string) *float64 {
	if v, ok := s.dollars(key); ok {
		return &v
	}
	return nil
}

// maxDollars is more than anything costs that is counted here.
const maxDollars = 1_000_000

// dollars reads a number that is not negative, and reports whether it is there.
func (s *section) dollars(key string) (v float64, ok bool) {
	if !s.decode(key, "a number", &v) {
		return 0, false
	}
	if v < 0 || v > maxDollars {
		s.fail(key, "must not be negative, nor more than %d", maxDollars)
		return 0, false
	}
	return v, true
}

// hosts reads a list of host names.
func (s *section) hosts(key string) []string {
	var list []string
	if !s.decode(key, "a list of texts", &list) {
		return nil
	}
	for i, host := range list {
		if reason := badHost(host); reason != "" {
			s.fail(key, "entry %d, %q, %s", i+1, host, reason)
		}
	}
	return list
}

func badHost(host string) string {
	switch {
	case host == "":
		return "is empty"
	case strings.Contains(host, "://"):
		return "is a URL; only the host belongs here, as in example.com or *.example.com"
	case strings.ContainsFunc(host, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:*[]", r)
	}):
		return "is no host; write host, host:port or *.host"
	}
	return ""
}

// url reads the address of a server, without a trailing slash.
func (s *section) url(key string) string {
	v := s.text(key)
	if v == "" {
		return ""
	}
	if reason := badURL(v); reason != "" {
		s.fail(key, "%s", reason)
		return ""
	}
	return strings.TrimRight(v, "/")
}

func badURL(v string) string {
	u, err := url.Parse(v)
	switch {
	case err == nil && u.User != nil: // v would show the password
		return "must not hold a user name or password"
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return fmt.Sprintf("%q is no URL; it looks like http://localhost:11434 or https://example.com/v1", redactUser(v))
	case !goodPort(u):
		return fmt.Sprintf("%q has no port that can be; it is a number from 1 to 65535", v)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "must end with the path; remove what begins with ? or #"
	}
	return ""
}

func goodPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

// redactUser hides what stands before an @, which may be a password.
func redactUser(v string) string {
	if i := strings.LastIndexByte(v, '@'); i >= 0 {
		return "…" + v[i:]
	}
	return v
}

// isUnencrypted reports whether a good URL leads over a network in the clear.
func isUnencrypted(v string) bool {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// end warns of the keys that no setting has. They are kept.
func (s *section) end() {
	for _, m := range s.obj.members {
		if slices.Contains(s.keys, m.key) || looksSecret(m.key) {
			continue
		}
		i := slices.IndexFunc(s.keys, func(key string) bool { return strings.EqualFold(key, m.key) })
		switch {
		case i >= 0:
			s.warn(m.key, "is ignored; did you mean %s?", childPath(s.path, s.keys[i]))
		case s.path != "": // at the top, sections of other programs are welcome
			s.warn(m.key, "is no setting and is ignored; there are %s", strings.Join(s.keys, ", "))
		}
	}
}
