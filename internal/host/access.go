package host

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// access decides who may talk to the host: who has a sign-in of this process,
// which one gets for a link that the host printed or for its password. A sign-in
// is a cookie that pages cannot read and a token that no browser sends by itself,
// both needed: cookies do not know ports, so that servers of others on this
// machine may be sent ours. It ends with the process, because whoever takes the
// port next is sent both by the tabs that are still open.
type access struct {
	id       identity
	instance string // names this process to other processes of the user; no secret
	host     string // as in --host
	port     int
	password string // "": signing in takes a link

	cookieValue, token string // a sign-in

	mu    sync.Mutex
	codes map[string]time.Time // that were not used yet, and when they end
	slow  time.Time            // no password is tried before
	fails int
}

func newAccess(id identity, host string, port int, password string) *access {
	return &access{
		id: id, instance: rand.Text(), host: host, port: port, password: password,
		cookieValue: rand.Text(), token: rand.Text(), codes: map[string]time.Time{},
	}
}

// codeAge is how long a link can be opened, once.
const codeAge = 10 * time.Minute

// code makes a one-time code.
func (a *access) code() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for c, end := range a.codes {
		if now.After(end) {
			delete(a.codes, c)
		}
	}
	code := rand.Text()
	a.codes[code] = now.Add(codeAge)
	return code
}

// redeem uses up a code.
func (a *access) redeem(code string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	end, ok := a.codes[code]
	delete(a.codes, code)
	return ok && time.Now().Before(end)
}

// cookieName holds the port, because cookies do not know ports.
func (a *access) cookieName() string { return "tendril_" + strconv.Itoa(a.port) }

func (a *access) cookie() *http.Cookie {
	return &http.Cookie{Name: a.cookieName(), Value: a.cookieValue, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// signedIn looks at all cookies of the name: other servers of this machine may
// have set one, too.
func (a *access) signedIn(r *http.Request) bool {
	good := func(c *http.Cookie) bool { return equal(c.Value, a.cookieValue) }
	return slices.ContainsFunc(r.CookiesNamed(a.cookieName()), good) && equal(r.Header.Get("X-Tendril-Token"), a.token)
}

// hostAllowed reports whether a Host header names us: a page whose name was made
// to point here (DNS rebinding) has another one.
func (a *access) hostAllowed(header string) bool {
	name, port, err := net.SplitHostPort(header)
	if err != nil {
		name, port = header, "80"
	}
	if port != strconv.Itoa(a.port) {
		return false
	}
	name = strings.ToLower(name)
	if name == "localhost" || name == strings.ToLower(a.host) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	if isLoopback(a.host) {
		return err == nil && ip.IsLoopback()
	}
	hostname, _ := os.Hostname() // "" names nobody
	return err == nil || name == strings.ToLower(hostname)
}

// isLoopback reports whether only this machine can connect to a host.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// originAllowed refuses what a page of another origin sends.
func originAllowed(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		return origin == "http://"+r.Host || origin == "https://"+r.Host
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

// refusal says why a request is refused; status 0 lets it pass.
type refusal struct {
	status       int
	code, detail string
	login        string // how a stranger signs in: link or password
}

// check is the gate of all requests below /api.
func (a *access) check(r *http.Request) refusal {
	switch {
	case !originAllowed(r):
		return refusal{status: http.StatusForbidden, code: "origin", detail: "requests of other sites are refused"}
	case !checksItself(r.URL.Path) && !a.signedIn(r):
		if a.password != "" {
			return refusal{status: http.StatusUnauthorized, code: "login", detail: "this window is not signed in; sign in with the password", login: "password"}
		}
		return refusal{status: http.StatusUnauthorized, code: "login", detail: "this window is not signed in; run `tendril` again: it opens a new link", login: "link"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !isJSON(r):
		return refusal{status: http.StatusUnsupportedMediaType, code: "json", detail: "changes need Content-Type: application/json"}
	}
	return refusal{}
}

// checksItself reports whether an operation is where strangers become known.
func checksItself(path string) bool {
	return path == "/api/login" || path == "/api/host/hello" || path == "/api/host/open"
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// guard lets only those requests through that may pass, and says in each answer
// what a browser may do with it.
func (a *access) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		header.Set("Cache-Control", "no-store")
		if !a.hostAllowed(r.Host) {
			problem(w, refusal{status: http.StatusMisdirectedRequest, code: "host", detail: fmt.Sprintf("this is not %.100q", r.Host)})
			return
		}
		if a.password == "" && isStranger(r.Context()) {
			problem(w, refusal{status: http.StatusForbidden, code: "user", detail: "this app belongs to another user of this machine"})
			return
		}
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		within := time.Time{} // what is asked of the agent may take its time
		if !strings.HasPrefix(r.URL.Path, "/api/") {
			within = time.Now().Add(pageWithin)
		}
		_ = http.NewResponseController(w).SetWriteDeadline(within) // the connection may be gone
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/"):
			if no := a.check(r); no.status != 0 {
				problem(w, no)
				return
			}
		case !reads:
			problem(w, refusal{status: http.StatusMethodNotAllowed, detail: "pages can only be read"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// How long a client may take for what anybody may ask.
const (
	pageWithin    = time.Minute
	refusedWithin = 5 * time.Second // to send the rest of a request that is refused
)

// problem answers as RFC 9457 has it, and ends the connection.
func problem(w http.ResponseWriter, p refusal) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedWithin)) // the connection may be gone
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(p.status)
	answer := map[string]any{"title": http.StatusText(p.status), "status": p.status, "detail": p.detail, "code": p.code}
	if p.login != "" {
		answer["login"] = p.login
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// try lets in who has a code or the password.
func (a *access) try(code, password string) refusal {
	switch {
	case code == "":
		return a.tryPassword(password)
	case a.redeem(code):
		return refusal{}
	}
	return refusal{status: http.StatusUnauthorized, code: "link", detail: "this link was used already, or is too old; if nobody but you can have used it, run `tendril` again: it opens a new one"}
}

// tryPassword compares a password, more slowly after each failure.
func (a *access) tryPassword(password string) refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch now := time.Now(); {
	case a.password == "":
		return refusal{status: http.StatusUnauthorized, code: "login", detail: "this host has no password; run `tendril` again: it opens a link"}
	case now.Before(a.slow):
		return refusal{status: http.StatusTooManyRequests, code: "slow", detail: "too many wrong passwords; wait a little"}
	case equal(password, a.password):
		a.fails = 0
		return refusal{}
	}
	a.fails++
	a.slow = time.Now().Add(min(time.Second<<min(a.fails, 6), time.Minute))
	return refusal{status: http.StatusUnauthorized, code: "password", detail: "the password is wrong"}
}
