package window

import (
	"net/url"
	"strings"
)

// verdict is what becomes of a navigation.
type verdict int

const (
	refuse   verdict = iota
	load             // in the window
	external         // in the default browser
)

// decide judges where a page wants to go. Only what has the app's own origin loads in its window. Other
// https addresses are for the default browser, when a person's click asks for them; nothing else goes anywhere.
func decide(origin *url.URL, target string, clicked bool) verdict {
	address, blob := strings.CutPrefix(target, "blob:") // blob:http://host:port/id has the origin of the page that made it
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return refuse
	case target == "about:blank" || target == "about:srcdoc":
		return load
	case sameOrigin(origin, u) && u.User == nil:
		return load
	case u.Scheme == "https" && u.Host != "" && clicked && !blob:
		return external
	}
	return refuse
}

// sameOrigin compares scheme, host and port (RFC 6454, section 5).
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
