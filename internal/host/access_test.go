package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/store"
)

// running is a host that serves, and a browser.
type running struct {
	*Host
	t      *testing.T
	client *http.Client
	token  string
	stop   func() error

	mu  sync.Mutex
	log []string
}

// serve starts a host at home, with an agent that only knows how to begin.
func serve(t *testing.T, home string, change func(*Options)) *running {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(home, "tendril.db"))
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := session.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t}
	o := Options{
		Home: home, Version: "test", Sessions: sessions,
		Folder:   func() (string, error) { return home, nil },
		Services: servicesAt(home),
		Command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "FAKE_AGENT=good")
			return cmd
		},
		Log: func(text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.log = append(r.log, text)
		},
	}
	if change != nil {
		change(&o)
	}
	if r.Host, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	r.stop = sync.OnceValue(func() error {
		r.client.CloseIdleConnections()
		cancel()
		err := <-done
		if e := sessions.Close(); err == nil {
			err = e
		}
		if e := db.Close(); err == nil {
			err = e
		}
		return err
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.client = &http.Client{Jar: jar, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// send sends a request, changed by edit, and returns the status and the body.
func (r *running) send(method, path, body string, edit func(*http.Request)) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.Address()+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("X-Tendril-Token", r.token)
	if edit != nil {
		edit(req)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp, string(text)
}

// signIn signs in with a link, as the page at it does.
func (r *running) signIn() {
	r.t.Helper()
	_, code, _ := strings.Cut(r.Link(), "/open?code=")
	resp, text := r.login("code", code)
	var s SignedIn
	if json.Unmarshal([]byte(text), &s) != nil || s.Token == "" {
		r.t.Fatalf("%d %s", resp.StatusCode, text)
	}
	r.token = s.Token
}

func (r *running) login(with, value string) (*http.Response, string) {
	r.t.Helper()
	body, err := json.Marshal(map[string]string{with: value})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.send("POST", "/api/login", string(body), nil)
}

// operations are all that the API has, with values for the places in paths.
func operations(t *testing.T) (all [][2]string) {
	t.Helper()
	data, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			for strings.Contains(path, "{") {
				before, after, _ := strings.Cut(path, "{")
				_, after, _ = strings.Cut(after, "}")
				path = before + "x" + after
			}
			all = append(all, [2]string{strings.ToUpper(method), path})
		}
	}
	return append(all, [2]string{"GET", "/api/events"}, [2]string{"GET", "/api/debug/events"}, [2]string{"GET", "/api/nothing"}, [2]string{"POST", "/api/nothing"})
}

// TestAccess_EachOperation is refused to strangers: without the cookie or the
// token, from pages of others, under another name, as a form (cases X01, X03, X04).
func TestAccess_EachOperation(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), nil)
	stranger := &running{Host: r.Host, t: t, client: &http.Client{Transport: r.client.Transport}}
	r.signIn()
	for _, o := range operations(t) {
		method, path := o[0], o[1]
		name := method + " " + path
		refused := func(who *running, status int, what string, edit func(*http.Request)) {
			t.Helper()
			resp, text := who.send(method, path, "{}", edit)
			if resp.StatusCode != status || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
				t.Errorf("%s %s: %d %s", name, what, resp.StatusCode, text)
			}
			if resp.Header.Get("Access-Control-Allow-Origin") != "" || resp.Header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s %s: %v", name, what, resp.Header)
			}
		}
		header := func(key, value string) func(*http.Request) {
			return func(req *http.Request) { req.Header.Set(key, value) }
		}
		if !checksItself(path) {
			refused(stranger, 401, "without either", nil)
			refused(stranger, 401, "without a cookie", header("X-Tendril-Token", r.token))
			refused(r, 401, "without a token", func(req *http.Request) { req.Header.Del("X-Tendril-Token") })
			refused(r, 401, "with another token", header("X-Tendril-Token", strings.Repeat("0", 64)))
			refused(stranger, 401, "with another cookie", func(req *http.Request) {
				req.AddCookie(&http.Cookie{Name: r.access.cookieName(), Value: strings.Repeat("0", 64)})
			})
			refused(stranger, 401, "with the token in the address", func(req *http.Request) { req.URL.RawQuery = "token=" + r.token + "&code=" + r.access.code() })
		}
		refused(r, 403, "from another origin", header("Origin", "http://attacker.example"))
		refused(r, 403, "from no origin", header("Origin", "null"))
		refused(r, 403, "from another port", header("Origin", "http://127.0.0.1:1"))
		refused(r, 403, "from another site", header("Sec-Fetch-Site", "cross-site"))
		refused(r, 403, "from another port of this machine", header("Sec-Fetch-Site", "same-site"))
		refused(r, 421, "under another name", func(req *http.Request) { req.Host = "attacker.example:" + fmt.Sprint(r.access.port) })
		refused(r, 421, "under another port", func(req *http.Request) { req.Host = "127.0.0.1:1" })
		refused(r, 421, "under no port", func(req *http.Request) { req.Host = "127.0.0.1" })
		if method == http.MethodGet {
			continue
		}
		for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain; application/json", "application/jsonx"} {
			refused(r, 415, "as "+kind, header("Content-Type", kind))
		}
	}
	for _, method := range []string{"OPTIONS", "TRACE", "PUT", "PROPFIND"} {
		for _, path := range []string{"/api/state", "/"} {
			if resp, text := r.send(method, path, "", nil); resp.StatusCode < 400 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
			}
		}
	}
}

// TestAccess_LinksWorkOnce, and leave no trace.
func TestAccess_LinksWorkOnce(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), nil)
	link := strings.TrimPrefix(r.Link(), r.Address())
	if resp, text := r.send("GET", link, "", nil); resp.StatusCode != 200 || len(resp.Cookies()) > 0 { // a preview of it uses nothing up
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	_, code, _ := strings.Cut(link, "code=")
	resp, _ := r.login("code", code)
	var cookie *http.Cookie
	for _, c := range resp.Cookies() {
		cookie = c
	}
	if cookie == nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" {
		t.Fatalf("%+v", cookie)
	}
	for _, code := range []string{code, "", strings.Repeat("A", 26)} {
		if resp, text := r.login("code", code); resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) > 0 || !strings.Contains(text, `"link"`) && code != "" {
			t.Errorf("%s: %d %s", code, resp.StatusCode, text)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := strings.Join(r.log, "\n"); strings.Contains(text, "code=") || strings.Contains(text, cookie.Value) {
		t.Errorf("the log knows how to sign in: %s", text)
	}
}

// TestAccess_EndsWithTheProcess: what the tabs of an ended host go on to send is
// of no use to whoever took its port meanwhile, at whichever port the next one is.
func TestAccess_EndsWithTheProcess(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	first := serve(t, home, nil)
	first.signIn()
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := serve(t, home, nil)
	resp, text := second.send("GET", "/api/state", "", func(req *http.Request) {
		c := first.access.cookie()
		c.Name = second.access.cookieName()
		req.AddCookie(c)
		req.Header.Set("X-Tendril-Token", first.token)
	})
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	second.signIn()
	if resp, text := second.send("POST", "/api/sessions", "{}", nil); resp.StatusCode != http.StatusCreated {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	info, err := os.Stat(identityPath(home))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestAccess_CookiesOfOthers: a server at another port may set ours, but not
// replace it.
func TestAccess_CookiesOfOthers(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), nil)
	r.signIn()
	planted := func(req *http.Request) {
		req.Header.Set("Cookie", r.access.cookieName()+"=planted; "+r.access.cookie().String())
	}
	stranger := &running{Host: r.Host, t: t, client: &http.Client{Transport: r.client.Transport}, token: r.token}
	if resp, text := stranger.send("GET", "/api/state", "", planted); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

func TestAccess_Password(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"0.0.0.0", "::", "192.0.2.1", "example.com", ""} {
		for _, password := range []string{"", "short"} {
			h, err := New(Options{Home: t.TempDir(), Host: host, Password: password})
			if host == "" && password == "" && err == nil {
				_ = h.listener.Close()
			} else if err == nil || !strings.Contains(err.Error(), "password") {
				t.Errorf("host %q, password %q: %v", host, password, err)
			}
		}
	}
	r := serve(t, t.TempDir(), func(o *Options) { o.Password = "correct horse battery" })
	if resp, text := r.send("GET", "/api/state", "", nil); resp.StatusCode != 401 || !strings.Contains(text, `"login":"password"`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	try := func(password string, want int) {
		t.Helper()
		resp, text := r.login("password", password)
		var s SignedIn
		if resp.StatusCode != want || want == 200 && json.Unmarshal([]byte(text), &s) != nil {
			t.Errorf("%q: %d %s", password, resp.StatusCode, text)
		}
		if s.Token != "" {
			r.token = s.Token
		}
	}
	try("correct horse battery", 200)
	try("wrong", 401)
	try("correct horse battery", 429) // it is told to wait
	if resp, text := r.send("GET", "/api/state", "", nil); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// TestFind: only who can read the secret makes the app come forward, and knows
// that it is the user's.
func TestFind(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if opened, err := Find(t.Context(), home, true); opened != nil || err != nil {
		t.Errorf("%+v %v", opened, err)
	}
	r := serve(t, home, nil)
	opened, err := Find(t.Context(), home, true)
	if err != nil || opened == nil || opened.Shown || !strings.HasPrefix(opened.Link, r.Address()+"/open?code=") {
		t.Errorf("%+v %v", opened, err)
	}
	good := r.access.id.authorization(r.access.port, r.access.instance)
	for _, bad := range []string{
		"", "Tendril ", strings.TrimPrefix(good, "Tendril "), good + "0", r.access.id.authorization(r.access.port, "other"),
		r.access.id.authorization(r.access.port+1, r.access.instance),
	} {
		if resp, text := r.send("POST", "/api/host/open", `{"show":true}`, func(req *http.Request) { req.Header.Set("Authorization", bad) }); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %d %s", bad, resp.StatusCode, text)
		}
	}
}

// TestFind_WhoeverElseListens learns nothing, not even by asking the host of the
// user, which is at another port.
func TestFind_WhoeverElseListens(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	r := serve(t, home, nil)
	var heard []string
	squatter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		heard = append(heard, req.URL.Path+req.Header.Get("Authorization"))
		_, answer := r.send(req.Method, req.URL.Path, string(body), func(on *http.Request) { on.Header = req.Header.Clone() })
		_, _ = io.WriteString(w, answer)
	}))
	defer squatter.Close()
	id := r.access.id
	id.Address, id.Port = "127.0.0.1", squatter.Listener.Addr().(*net.TCPAddr).Port
	if opened, err := id.find(t.Context(), true); err == nil {
		t.Errorf("%+v", opened)
	}
	if len(heard) != 1 || heard[0] != "/api/host/hello" {
		t.Errorf("%q", heard)
	}
}

// TestIdentity_NotOurs: what others could have read or made is replaced, and
// nothing waits for it.
func TestIdentity_NotOurs(t *testing.T) {
	t.Parallel()
	good := `{"secret":"` + strings.Repeat("x", 40) + `","address":"127.0.0.1","port":7777}`
	for what, plant := range map[string]func(path string) error{
		"readable by others": func(path string) error { return os.WriteFile(path, []byte(good), 0o644) },
		"a folder":           func(path string) error { return os.Mkdir(path, 0o700) },
		"a link": func(path string) error {
			return errors.Join(os.WriteFile(path+".there", []byte(good), 0o600), os.Symlink(path+".there", path))
		},
		"no JSON": func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		"no address": func(path string) error {
			return os.WriteFile(path, []byte(strings.Replace(good, "127.0.0.1", "x", 1)), 0o600)
		},
	} {
		home := t.TempDir()
		if err := plant(identityPath(home)); err != nil {
			t.Fatal(err)
		}
		if id, err := readIdentity(home); err != nil || id.Port != 0 || len(id.Secret) < 32 || strings.Contains(id.Secret, "xx") {
			t.Errorf("%s: %+v %v", what, id, err)
		}
	}
	home := t.TempDir()
	if err := os.WriteFile(identityPath(home), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := readIdentity(home); err != nil || id.Port != 7777 {
		t.Errorf("%+v %v", id, err)
	}
}
