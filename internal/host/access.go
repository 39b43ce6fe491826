package host

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// access decides who may talk to the host. Only who opened a link that the host
// printed, or knows its password, has the cookie; what changes something also
// needs a token that no browser sends by itself.
type access struct {
	id       identity
	host     string // as in --host
	port     int
	password string // "": signing in takes a link

	mu    sync.Mutex
	codes map[string]time.Time // that were not used yet, and when they end
	slow  time.Time            // no password is tried before
	fails int
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

func (a *access) passwordSum() string {
	sum := sha256.Sum256([]byte(a.password))
	return hex.EncodeToString(sum[:])
}

// cookie is good until the secret or the password changes.
func (a *access) cookie() *http.Cookie {
	return &http.Cookie{
		Name: a.cookieName(), Value: a.id.mac("cookie", a.passwordSum()), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int((400 * 24 * time.Hour).Seconds()),
	}
}

// token is what changes need.
func (a *access) token() string { return a.id.mac("token", a.passwordSum()) }

func (a *access) signedIn(r *http.Request) bool {
	c, err := r.Cookie(a.cookieName())
	return err == nil && equal(c.Value, a.cookie().Value)
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
}

// check is the gate of all requests below /api.
func (a *access) check(r *http.Request) refusal {
	open := r.URL.Path == "/api/login" || r.URL.Path == "/api/host/open" // they check by themselves
	switch {
	case !originAllowed(r):
		return refusal{http.StatusForbidden, "origin", "requests of other sites are refused"}
	case !open && !a.signedIn(r):
		return refusal{http.StatusUnauthorized, "login", "this window is not signed in; run `tendril` again: it opens a new link"}
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return refusal{}
	case !isJSON(r):
		return refusal{http.StatusUnsupportedMediaType, "json", "changes need Content-Type: application/json"}
	case !open && !equal(r.Header.Get("X-Tendril-Token"), a.token()):
		return refusal{http.StatusForbidden, "token", "changes need the header X-Tendril-Token with the token that GET /api/state tells"}
	}
	return refusal{}
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
			problem(w, refusal{http.StatusMisdirectedRequest, "host", fmt.Sprintf("this is not %.100q", r.Host)})
			return
		}
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/"):
			if no := a.check(r); no.status != 0 {
				problem(w, no)
				return
			}
		case !reads:
			problem(w, refusal{http.StatusMethodNotAllowed, "", "pages can only be read"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// problem answers as RFC 9457 has it.
func problem(w http.ResponseWriter, p refusal) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may be gone
		"title": http.StatusText(p.status), "status": p.status, "detail": p.detail, "code": p.code,
	})
}

// openLink signs in who opens a printed link, once, and leaves no code in the
// address.
func (a *access) openLink(w http.ResponseWriter, r *http.Request) {
	if !a.redeem(r.URL.Query().Get("code")) && !a.signedIn(r) {
		page(w, http.StatusUnauthorized, "This link was used already, or is too old", "Run tendril again: it opens a new one.")
		return
	}
	http.SetCookie(w, a.cookie())
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// tryPassword compares a password, more slowly after each failure.
func (a *access) tryPassword(password string) refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch now := time.Now(); {
	case a.password == "":
		return refusal{http.StatusUnauthorized, "login", "this host has no password; run `tendril` again: it opens a link"}
	case now.Before(a.slow):
		return refusal{http.StatusTooManyRequests, "slow", "too many wrong passwords; wait a little"}
	case equal(password, a.password):
		a.fails = 0
		return refusal{}
	}
	a.fails++
	a.slow = time.Now().Add(min(time.Second<<min(a.fails, 6), time.Minute))
	return refusal{http.StatusUnauthorized, "password", "the password is wrong"}
}
