package window

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"
)

const address = "http://127.0.0.1:4711/?code=one-time"

// unix skips what needs shell scripts and PATH to stand in for programs.
func unix(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("stands in for the programs of a Linux desktop")
	}
}

func TestOpen_Browser(t *testing.T) {
	unix(t)
	d := newDesk(t)
	d.env["DISPLAY"] = ":1"
	d.program(t, "xdg-open", `echo "$@" >> "$HOME/opened"; env > "$HOME/env"`)
	w := d.open(t, Browser, address)
	if w.Kind() != Browser {
		t.Errorf("kind %q", w.Kind())
	}
	fresh := strings.Replace(address, "one-time", "fresh", 1)
	if err := w.Raise(fresh); err != nil {
		t.Error(err)
	}
	if got, want := d.read("home/opened"), address+"\n"+fresh+"\n"; got != want {
		t.Errorf("opened %q, want %q", got, want)
	}
	if env := d.read("home/env"); strings.Contains(env, "secret") || !strings.Contains(env, "DISPLAY=:1\n") {
		t.Errorf("environment of the browser:\n%s", env)
	}
	if err := w.Raise("--new-window"); err == nil {
		t.Error("a flag was taken for a URL")
	}
	w.Close()
	w.Close()
	if err := w.Err(); err != nil {
		t.Error(err)
	}
	if err := w.Raise(fresh); err == nil {
		t.Error("a closed window was raised")
	}
}

func TestOpen_TriesOneKindAfterTheOther(t *testing.T) {
	unix(t)
	tests := []struct {
		name  string
		desk  func(*desk)
		kind  Kind   // "" means that nothing opens
		error string // part of it
	}{
		{"no display", func(*desk) {}, "", "no display"},
		{"no display, but a browser that needs none", func(d *desk) { d.env["BROWSER"] = "elsewhere"; d.program(t, "xdg-open", "") }, Browser, ""},
		{"nothing installed", func(d *desk) { d.env["DISPLAY"] = ":1"; d.env["PATH"] = d.dir }, "", "xdg-open"},
		{"the browser fails", func(d *desk) { d.env["BROWSER"] = "x"; d.program(t, "xdg-open", "exit 4") }, "", "exit status 4"},
		{"all but the browser fail", func(d *desk) {
			d.env["DISPLAY"] = ":987654" // there is no such display
			d.program(t, "google-chrome-stable", "echo 'cannot start "+address+"' >&2; exit 21")
			d.program(t, "xdg-open", "")
		}, Browser, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			tt.desk(d)
			w, err := Open(t.Context(), d.options("", address))
			if strings.Contains(d.logged(), "one-time") {
				t.Errorf("the log holds the code:\n%s", d.logged())
			}
			if tt.kind != "" {
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				if w.Kind() != tt.kind {
					t.Errorf("kind %q, want %q", w.Kind(), tt.kind)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.error) || !strings.Contains(err.Error(), "in a browser yourself") || strings.Contains(err.Error(), "one-time") {
				t.Errorf("error: %v", err)
			}
		})
	}
}

func TestOpen_RefusesWhatIsNoAddress(t *testing.T) {
	d := newDesk(t)
	for _, bad := range []string{"", "-flag", "file:///etc/passwd", "javascript:alert(1)", "http:", "http://[secret", "127.0.0.1:4711"} {
		_, err := Open(t.Context(), d.options("", bad))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := Open(t.Context(), d.options("tab", address)); err == nil || !strings.Contains(err.Error(), "native, app or browser") {
		t.Errorf("unknown kind: %v", err)
	}
}

func TestOpen_ContextIsTheLifeOfTheWindow(t *testing.T) {
	unix(t)
	d := newDesk(t)
	d.env["BROWSER"] = "x"
	d.program(t, "xdg-open", "")
	ctx, cancel := context.WithCancel(t.Context())
	w, err := Open(ctx, d.options("", address))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := closed(t, w); err != nil {
		t.Error(err)
	}
	if _, err := Open(ctx, d.options("", address)); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

func TestServe_RefusesBadOrders(t *testing.T) {
	tests := map[string]string{
		"nothing":        "",
		"no JSON":        "open http://127.0.0.1/\n",
		"another order":  `{"raise":true}` + "\n",
		"a wrong type":   `{"open":{"url":7}}` + "\n",
		"no web address": `{"open":{"url":"file:///etc/passwd"}}` + "\n",
		"too long":       `{"open":{"url":"http://` + strings.Repeat("a", lineLimit) + `"}}` + "\n",
	}
	for name, orders := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := Serve(t.Context(), strings.NewReader(orders), &out, func(string) string { return "" })
			var r report
			if err == nil || json.Unmarshal([]byte(out.String()), &r) != nil || r.Failed != err.Error() || r.Shown {
				t.Errorf("error %v, reports %q", err, out.String())
			}
		})
	}
}

func TestDecide(t *testing.T) {
	tests := []struct {
		target  string
		clicked bool
		want    verdict
	}{
		{"http://127.0.0.1:4711/", false, load},
		{"http://127.0.0.1:4711/sessions?x=1#y", true, load},
		{"HTTP://127.0.0.1:4711", false, load},
		{"blob:http://127.0.0.1:4711/0b0f-11", false, load},
		{"about:blank", false, load},
		{"about:srcdoc", false, load},
		{"https://example.com/page", true, external},
		{"https://127.0.0.1:4711/", true, external},
		{"https://example.com/page", false, refuse},
		{"http://example.com/", true, refuse},
		{"http://127.0.0.1:4712/", true, refuse},
		{"http://127.0.0.1/", true, refuse},
		{"http://localhost:4711/", true, refuse},
		{"http://someone@127.0.0.1:4711/", true, refuse},
		{"http://127.0.0.1:4711@example.com/", true, refuse},
		{"http://127.0.0.1:4711.example.com/", true, refuse},
		{"blob:https://example.com/0b0f-11", true, refuse},
		{"blob:null/0b0f-11", true, refuse},
		{"data:text/html,x", true, refuse},
		{"file:///etc/passwd", true, refuse},
		{"javascript:alert(1)", true, refuse},
		{"about:config", true, refuse},
		{"ssh://example.com", true, refuse},
		{"https:", true, refuse},
		{"", true, refuse},
		{"http://[", true, refuse},
	}
	origin, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		if got := decide(origin, tt.target, tt.clicked); got != tt.want {
			t.Errorf("decide(%q, clicked %t) = %d, want %d", tt.target, tt.clicked, got, tt.want)
		}
	}
	secure, err := url.Parse("https://tendril.example")
	if err != nil {
		t.Fatal(err)
	}
	if got := decide(secure, "https://TENDRIL.example:443/x", false); got != load {
		t.Errorf("the default port is another origin: %d", got)
	}
}

// Nothing but the app's origin loads, and nothing but https leaves.
func FuzzDecide(f *testing.F) {
	for _, seed := range []string{address, "https://example.com", "blob:http://127.0.0.1:4711/1", "http://127.0.0.1:4711\\@example.com", "//127.0.0.1:4711"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		origin, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		switch decide(origin, target, true) {
		case load:
			rest := strings.ToLower(strings.TrimPrefix(target, "blob:"))
			after, ok := strings.CutPrefix(rest, "http://127.0.0.1:4711")
			if target != "about:blank" && target != "about:srcdoc" && (!ok || after != "" && !strings.ContainsRune("/?#", rune(after[0]))) {
				t.Errorf("%q loads", target)
			}
		case external:
			if !strings.HasPrefix(strings.ToLower(target), "https://") {
				t.Errorf("%q leaves", target)
			}
		}
	})
}

// Whatever a library or a broken child writes to stdout, in whatever pieces.
func FuzzReports(f *testing.F) {
	f.Add([]byte(`{"shown":true}`+"\n"+`{"failed":"x"}`+"\n"), 3)
	f.Add([]byte("\n{\n\x00"+`{"log":"a"}`), 1)
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		if piece <= 0 {
			piece = 1
		}
		collect := func(piece int) (failed, log string, shown int) {
			r := &reports{shown: make(chan error, 1), log: func(text string) { log += text + "\n" }}
			for rest := text; len(rest) > 0; {
				n := min(piece, len(rest))
				if _, err := r.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			return r.failed, log, len(r.shown)
		}
		failed, log, shown := collect(piece)
		failed2, log2, shown2 := collect(len(text) + 1)
		if len(text) < lineLimit && (failed != failed2 || log != log2 || shown != shown2) {
			t.Errorf("pieces of %d make a difference", piece)
		}
	})
}

func TestTail(t *testing.T) {
	var out tail
	if _, err := io.Copy(&out, strings.NewReader(strings.Repeat("x", 3*tailBytes)+"\nfirst\n  last \n\n")); err != nil {
		t.Fatal(err)
	}
	if len(out.text) > tailBytes || out.lastLine() != "last" {
		t.Errorf("%d bytes, last line %q", len(out.text), out.lastLine())
	}
	if none := new(tail).lastLine(); none != "" {
		t.Errorf("last line of nothing: %q", none)
	}
}

// TestOpenFolder hands the file manager a folder, and no keys.
func TestOpenFolder(t *testing.T) {
	unix(t)
	d := newDesk(t)
	getenv := d.options("", address).Getenv
	if err := OpenFolder("/some folder", getenv); err == nil || !strings.Contains(err.Error(), "/some folder") {
		t.Errorf("without a desktop: %v", err)
	}
	d.env["DISPLAY"] = ":1"
	d.program(t, "xdg-open", `env > "$HOME/env"; echo "$@" > "$HOME/part"; mv "$HOME/part" "$HOME/opened"`)
	if err := OpenFolder("/some folder", getenv); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); d.read("home/opened") == "" && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if got := d.read("home/opened"); got != "/some folder\n" {
		t.Errorf("opened %q", got)
	}
	if env := d.read("home/env"); strings.Contains(env, "secret") || !strings.Contains(env, "DISPLAY=:1\n") {
		t.Errorf("environment of the file manager:\n%s", env)
	}
}
