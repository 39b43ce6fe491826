package cli_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// The canaries hold what encodings change. One has the form of a key, the other
// one can only be known by its value.
const (
	keyCanary   = "sk-Canary7f3Kq9/Zt+Wm2=Xb4Rv8Ln6Pd1Hs5"
	plainCanary = "Canary.8hTq/3+Jw=Zr6Ym1Nc9Vb4Gx7Sd2Lf0"
)

// spill returns the form in which a secret stands in data, or "". A part of 8
// characters is too much.
func spill(data, secret string) string {
	for i := range len(secret) - 7 {
		if strings.Contains(data, secret[i:i+8]) {
			return "its part " + secret[i:i+8]
		}
	}
	for _, form := range encodings(secret) {
		if strings.Contains(data, form) {
			return form
		}
	}
	return ""
}

// encodings are the other forms of a secret, base64 at every alignment.
func encodings(secret string) []string {
	forms := []string{url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret))}
	for shift := range 3 {
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			text := enc.EncodeToString([]byte(strings.Repeat(" ", shift) + secret))
			forms = append(forms, text[4:len(text)-4]) // what does not depend on its neighbours
		}
	}
	return forms
}

// canaryWorld is a home with a key, and a workspace.
type canaryWorld struct {
	*sandboxed
	kind, key, dir string
	flags          []string // of run
}

func newCanaryWorld(t *testing.T, kind, baseURL string, inFile bool, env ...string) *canaryWorld {
	t.Helper()
	dir := t.TempDir()
	w := &canaryWorld{kind: kind, key: keyCanary, dir: dir, sandboxed: &sandboxed{t: t, home: filepath.Join(dir, "home"), ws: filepath.Join(dir, "ws")}}
	if kind == "openai" && baseURL != "" {
		baseURL += "/v1"
	}
	settings, err := json.Marshal(map[string]any{
		"workspace": w.ws, "model": map[string]any{"provider": kind, kind: map[string]string{"modelId": "scripted", "baseURL": baseURL}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "config.json"), settings, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasSuffix(name, "_API_KEY") && !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			w.env = append(w.env, v)
		}
	}
	w.env = append(w.env, "TENDRIL_HOME="+w.home, "HOME="+dir, "DENO_PATH="+watchedDeno(t, dir), "TMPDIR="+dir)
	w.env = append(w.env, env...)
	name := strings.ToUpper(kind) + "_API_KEY"
	if !inFile {
		w.env = append(w.env, name+"="+w.key)
		return w
	}
	w.key = plainCanary
	cmd := exec.Command("tendril", "secret", "set", name)
	cmd.Env, cmd.Stdin = w.env, strings.NewReader(w.key+"\n")
	if out, err := cmd.CombinedOutput(); err != nil || spill(string(out), w.key) != "" {
		t.Fatalf("%v: %s", err, out)
	}
	return w
}

// watchedDeno is a Deno that writes down its environment and its arguments
// before it starts.
func watchedDeno(t *testing.T, dir string) string {
	t.Helper()
	deno := testkit.Deno(t)
	if runtime.GOOS == "windows" {
		return deno
	}
	path := filepath.Join(dir, "deno")
	script := fmt.Sprintf("#!/bin/sh\n{ env; printf '%%s\\n' \"$@\"; } >>'%s/child-environment'\nexec '%s' \"$@\"\n", dir, deno)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// play runs a command in both forms of output and looks for secrets afterwards.
func (w *canaryWorld) play(code int, others ...string) {
	w.t.Helper()
	run := append([]string{"run", "go"}, w.flags...)
	commands := [][]string{run, append(run[:len(run):len(run)], "--json")}
	if code == 0 {
		commands = append(commands, []string{"doctor"}, []string{"secret", "list", "--json"}, []string{"config", "get", "--json"})
	}
	for _, args := range commands {
		got := w.wait(w.start(args...), 2*time.Minute)
		if args[0] == "run" && got != code {
			w.t.Errorf("%q: exit code %d, want %d\n%s%s", args, got, code, w.out.String(), w.errs.String())
		}
		for _, secret := range append(others, w.key) {
			if form := spill(w.out.String(), secret); form != "" {
				w.t.Errorf("%q: stdout holds %s:\n%s", args, form, w.out.String())
			}
			if form := spill(w.errs.String(), secret); form != "" {
				w.t.Errorf("%q: stderr holds %s:\n%s", args, form, w.errs.String())
			}
		}
	}
	w.checkFiles(append(others, w.key))
}

// checkFiles looks into every file below the folder of the test, but the one
// that is there to hold the key.
func (w *canaryWorld) checkFiles(secrets []string) {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || path == filepath.Join(w.home, "secrets.json") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, secret := range secrets {
			if form := spill(string(raw), secret); form != "" {
				w.t.Errorf("%s holds %s", path, form)
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// everyWorld runs a test for each provider and each place of the key.
func everyWorld(t *testing.T, do func(t *testing.T, kind string, inFile bool)) {
	for _, kind := range []string{"openai", "anthropic"} {
		for _, inFile := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s key in a file is %v", kind, inFile), func(t *testing.T) {
				t.Parallel()
				do(t, kind, inFile)
			})
		}
	}
}

// keyOf is the key that a provider got.
func keyOf(h http.Header) string {
	return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") + h.Get("X-Api-Key")
}

// TestCanary_Errors: a provider that repeats the key in its errors, in whatever
// form, does not make us repeat it (case X05).
func TestCanary_Errors(t *testing.T) {
	echoes := map[string]func(key string) string{
		"whole": func(key string) string { return "Incorrect API key provided: " + key + ". Find yours on the web." },
		"in a URL": func(key string) string {
			return "GET https://user:" + url.QueryEscape(key) + "@host/?key=" + url.QueryEscape(key)
		},
		"in a header": func(key string) string { return `{"Authorization":"Bearer ` + key + `"}` },
		"masked": func(key string) string {
			return "Incorrect API key provided: " + key[:12] + "********" + key[len(key)-4:]
		},
		"its end":      func(key string) string { return "the key that ends in " + key[len(key)-14:] + " is unknown" },
		"its middle":   func(key string) string { return "the key …" + key[8:24] + "… is unknown" },
		"base64":       func(key string) string { return "bad token " + base64.StdEncoding.EncodeToString([]byte(key)) },
		"basic":        func(key string) string { return "bad Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+key)) },
		"base64url":    func(key string) string { return "bad token " + base64.RawURLEncoding.EncodeToString([]byte("k:"+key)) },
		"path":         func(key string) string { return "no such path /v1/" + url.PathEscape(key) },
		"hex":          func(key string) string { return "bad bytes " + hex.EncodeToString([]byte(key)) },
		"control bits": func(key string) string { return "bad \x1b[1m" + key + "\x1b[0m\u202e" },
		"far behind":   func(key string) string { return strings.Repeat("word ", 75) + " " + key },
	}
	everyWorld(t, func(t *testing.T, kind string, inFile bool) {
		var mu sync.Mutex
		var reply testkit.Reply
		p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply {
			mu.Lock()
			defer mu.Unlock()
			return reply
		})
		w := newCanaryWorld(t, kind, p.URL, inFile)
		answer := func(r testkit.Reply) {
			mu.Lock()
			defer mu.Unlock()
			reply = r
		}
		first := map[string]int{"openai": 0, "anthropic": 1}[kind]
		if inFile {
			first += 2
		}
		for i, name := range slices.Sorted(maps.Keys(echoes)) {
			said, code := echoes[name](w.key), 3
			form := (i + first) % 3 // so every echo comes in every form
			switch form {
			case 0:
				answer(testkit.JSON(401, map[string]any{"type": "error", "error": map[string]string{"type": "authentication_error", "message": said}}))
			case 1:
				answer(testkit.Reply{Status: 403, Body: []byte(said), Headers: map[string]string{"Content-Type": "text/plain", "X-Echo": w.key}})
			case 2:
				raw, err := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": "invalid_request_error", "message": said}})
				if err != nil {
					t.Fatal(err)
				}
				answer(testkit.Reply{Body: fmt.Appendf(nil, "event: error\ndata: %s\n\n", raw), Headers: map[string]string{"Content-Type": "text/event-stream"}})
				code = 4
			}
			w.once(fmt.Sprintf("%s, reply %d", name, form), code)
		}
		for _, r := range p.Requests() {
			if keyOf(r.Headers) != w.key {
				t.Errorf("the provider got the key %q", keyOf(r.Headers))
			}
		}
		answer(testkit.Reply{Status: 401, Body: []byte("no " + w.key)})
		w.play(3)
	})
}

// once runs one turn with --json, which holds all that is said.
func (w *canaryWorld) once(what string, code int) {
	w.t.Helper()
	if got := w.wait(w.start("run", "--json", "go"), 2*time.Minute); got != code {
		w.t.Errorf("%s: exit code %d, want %d\n%s%s", what, got, code, w.out.String(), w.errs.String())
	}
	if form := spill(w.out.String()+w.errs.String(), w.key); form != "" {
		w.t.Errorf("%s: the output holds %s:\n%s%s", what, form, w.out.String(), w.errs.String())
	}
}

// TestCanary_Unsendable: a key that no header can carry is a wrong key, and is
// not shown.
func TestCanary_Unsendable(t *testing.T) {
	for _, kind := range []string{"openai", "anthropic"} {
		p := testkit.NewProvider(t)
		w := newCanaryWorld(t, kind, p.URL, false)
		w.env = append(w.env, strings.ToUpper(kind)+"_API_KEY="+w.key+"\n"+plainCanary)
		w.play(3, plainCanary)
		if n := len(p.Requests()); n > 0 {
			t.Errorf("%d requests", n)
		}
	}
}

// TestCanary_Redirect: the key is not handed to whom a server names.
func TestCanary_Redirect(t *testing.T) {
	everyWorld(t, func(t *testing.T, kind string, inFile bool) {
		other := testkit.NewProvider(t)
		location := other.URL + "/v1/messages?a=" + url.QueryEscape(keyCanary) + "&b=" + url.QueryEscape(plainCanary)
		p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply {
			return testkit.Reply{Status: 307, Headers: map[string]string{"Location": location}}
		})
		w := newCanaryWorld(t, kind, p.URL, inFile)
		w.play(4)
		if requests := other.Requests(); len(requests) > 0 {
			t.Errorf("the other host was asked, with the key %q", keyOf(requests[0].Headers))
		}
		if requests := p.Requests(); len(requests) == 0 || keyOf(requests[0].Headers) != w.key {
			t.Errorf("the provider did not get the key: %v", requests)
		}
	})
}

// TestCanary_Proxy: neither the key nor the password of a proxy is told when the
// proxy refuses, answers nonsense, or is not there.
func TestCanary_Proxy(t *testing.T) {
	const password = "Proxy.Canary4Tz8Wq1"
	everyWorld(t, func(t *testing.T, kind string, inFile bool) {
		if inFile != (kind == "openai") {
			t.Skip("each provider once will do: it waits between its tries")
		}
		basic := base64.StdEncoding.EncodeToString([]byte("user:" + password))
		for name, answer := range map[string]string{
			"refuses":  "HTTP/1.1 407 no " + password + " " + basic + "\r\nContent-Length: 0\r\n\r\n",
			"nonsense": password + " " + basic + "\r\n\r\n",
		} {
			address, asked := rawServer(t, answer)
			w := newCanaryWorld(t, kind, "https://provider.invalid", inFile, "HTTPS_PROXY=http://user:"+password+"@"+address)
			w.flags = []string{"--timeout", "2s"} // instead of all tries
			w.play(1, password)
			if len(asked()) == 0 {
				t.Errorf("%s: the proxy was not asked", name)
			}
			for _, request := range asked() {
				if spill(request, w.key) != "" {
					t.Errorf("%s: the proxy got the key: %s", name, request)
				}
			}
		}
		w := newCanaryWorld(t, kind, "https://provider.invalid", inFile, "HTTPS_PROXY=http://user:"+password+"@[nonsense")
		w.flags = []string{"--timeout", "2s"}
		w.play(1, password)
	})
}

// rawServer answers each connection with the same bytes and closes it.
func rawServer(t *testing.T, answer string) (address string, asked func() []string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var requests []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			buffer := make([]byte, 16<<10)
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			n, _ := conn.Read(buffer)
			mu.Lock()
			requests = append(requests, string(buffer[:n]))
			mu.Unlock()
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String(), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return requests
	}
}

// TestCanary_Run: a turn that builds and runs capabilities leaves the key
// nowhere, and Deno never has it.
func TestCanary_Run(t *testing.T) {
	const code = `let all = "no environment";
try { all = JSON.stringify(Deno.env.toObject()); } catch { /* denied */ }
console.log(all);
export default () => all;`
	everyWorld(t, func(t *testing.T, kind string, inFile bool) {
		build := testkit.OpenAI
		if kind == "anthropic" {
			build = testkit.Anthropic
		}
		definition, err := json.Marshal(map[string]any{"code": code, "definition": map[string]any{
			"name": "spy", "capability": "Prints its environment.", "triggers": []string{"test asks", "test asks again"}, "suppression": []string{},
		}})
		if err != nil {
			t.Fatal(err)
		}
		p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
			switch r.N % 3 {
			case 0:
				return build(testkit.Turn{Calls: []testkit.Call{{ID: fmt.Sprintf("r%d", r.N), Name: "registerCapability", Args: string(definition)}}})
			case 1:
				return build(testkit.Turn{Calls: []testkit.Call{{ID: fmt.Sprintf("x%d", r.N), Name: "execute", Args: `{"name":"spy"}`}}})
			}
			return build(testkit.Turn{Text: "done"})
		})
		w := newCanaryWorld(t, kind, p.URL, inFile)
		w.play(0)
		requests := p.Requests()
		if broken := testkit.Lint(requests); len(requests) != 6 || len(broken) > 0 {
			t.Errorf("%d requests; real providers refuse: %v", len(requests), broken)
		}
		for _, r := range requests {
			if keyOf(r.Headers) != w.key || spill(string(r.Body)+r.Path, w.key) != "" {
				t.Errorf("the key is not where it belongs: %v\n%s", r.Headers, r.Body)
			}
		}
		if !strings.Contains(string(requests[2].Body), "no environment") {
			t.Errorf("the capability has an environment: %s", requests[2].Body)
		}
		if raw, err := os.ReadFile(filepath.Join(w.dir, "child-environment")); runtime.GOOS != "windows" && (err != nil || !strings.Contains(string(raw), "DENO_DIR=")) {
			t.Errorf("the environment of Deno was not seen: %v\n%s", err, raw)
		}
	})
}

// TestCanary_ModuleToken: the login to a registry of modules lets a dependency be
// fetched, and is then nowhere; nor does the capability get hold of it.
func TestCanary_ModuleToken(t *testing.T) {
	const token = "Npm.Canary5Kw9/Xr2+Vb"
	served := testkit.NewModules(t, nil)
	served.RequireAuth("Bearer " + token)
	served.Publish("closed", testkit.Package{Version: "1.0.0", Files: map[string]string{"mod.js": "export default 'from the closed registry';"}})
	const code = `import text from "npm:closed@1.0.0";
let seen = "";
for (const look of [() => JSON.stringify(Deno.env.toObject()), () => Deno.readTextFileSync(Deno.env.get("HOME") + "/.npmrc"), () => Deno.readTextFileSync("/root/.npmrc")]) {
  try { seen += look(); } catch { /* denied */ }
}
console.log(seen);
export default () => text + seen;`
	definition, err := json.Marshal(map[string]any{"code": code, "definition": map[string]any{
		"name": "closed_text", "capability": "Returns the text of a package.", "triggers": []string{"test asks", "test asks again"}, "suppression": []string{},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		switch r.N % 3 {
		case 0:
			return testkit.OpenAI(testkit.Turn{Calls: []testkit.Call{{ID: fmt.Sprintf("r%d", r.N), Name: "registerCapability", Args: string(definition)}}})
		case 1:
			return testkit.OpenAI(testkit.Turn{Calls: []testkit.Call{{ID: fmt.Sprintf("x%d", r.N), Name: "execute", Args: `{"name":"closed_text"}`}}})
		}
		return testkit.OpenAI(testkit.Turn{Text: "done"})
	})
	rc := filepath.Join(t.TempDir(), "npmrc")
	host := strings.TrimPrefix(served.Server.URL, "http:")
	if err := os.WriteFile(rc, []byte("registry="+served.NPM().String()+"\n"+host+"/npm/:_authToken="+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newCanaryWorld(t, "openai", p.URL, false, "NPM_CONFIG_USERCONFIG="+rc)
	w.play(0, token)
	if requests := p.Requests(); len(requests) < 3 || !strings.Contains(string(requests[2].Body), "from the closed registry") {
		t.Errorf("the capability did not run: %s", requests[len(requests)-1].Body)
	}
	served.RequireAuth("Bearer another") // now the registry refuses: its words are not ours
	served.Publish("closed", testkit.Package{Version: "1.0.1"})
	if w.wait(w.start("capability", "update", "closed_text"), 2*time.Minute); !strings.Contains(w.errs.String(), "wants a login") {
		t.Errorf("an update says %s", w.errs.String())
	}
	for _, args := range [][]string{{"capability", "update", "closed_text"}, {"capability", "show", "closed_text", "--json"}, {"capability", "verify"}} {
		w.wait(w.start(args...), 2*time.Minute)
		if form := spill(w.out.String()+w.errs.String(), token); form != "" {
			t.Errorf("%q tells %s:\n%s%s", args, form, w.out.String(), w.errs.String())
		}
	}
	w.checkFiles([]string{token})
}
