//go:build linux && (amd64 || arm64)

package window

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const webProcess = "WebKitWebProces" // names are cut after 15 bytes

// page is a small app: a code is exchanged for a cookie, and a script says that it runs. Its rows are 50
// pixels high, from the top: a link to https, one to http, an export, one that hangs.
type page struct {
	*httptest.Server
	mu  sync.Mutex
	got []string // what was asked for
}

func newPage(t *testing.T) *page {
	p := &page{}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Server.Close)
	return p
}

const pageHTML = `<!doctype html><meta charset=utf-8><title>Little page</title><link rel=icon href=data:,>
<style>body{margin:0;background:#336699} a,button{display:block;height:50px;width:300px;box-sizing:border-box}</style>
<a href="https://example.com/in">https</a><a href="http://example.com/out" target=_blank>http</a><a href="/export">export</a>
<button onclick="document.title='Hanging';setTimeout(()=>{for(;;);},500)">hang</button>
<script>fetch('/runs?'+innerWidth+'x'+innerHeight)</script>`

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cookie := "without cookie"
	if c, err := r.Cookie("session"); err == nil {
		cookie = "with " + c.Value
	}
	p.mu.Lock()
	p.got = append(p.got, r.URL.String()+" "+cookie)
	p.mu.Unlock()
	switch {
	case r.URL.Query().Has("code"):
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "cookie", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: 3600})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case r.URL.Path == "/export":
		w.Header().Set("Content-Disposition", `attachment; filename="session.json"`)
		fmt.Fprint(w, `{"exported": true}`)
	default:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, pageHTML)
	}
}

// requests counts the requests that were this.
func (p *page) requests(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, got := range p.got {
		if got == what {
			n++
		}
	}
	return n
}

// runs waits until the script of the page has run for the nth time.
func (p *page) runs(t *testing.T, n int) {
	t.Helper()
	eventually(t, "the page runs in a window of the right size, with its cookie", func() bool { return p.requests("/runs?1280x800 with cookie") == n })
}

// newNative is a desk with a screen and WebKitGTK.
func newNative(t *testing.T) (*desk, *screen, *page) {
	t.Helper()
	if found, _ := filepath.Glob("/usr/lib*/*/libwebkit2gtk-4.1.so.0"); found == nil {
		t.Skip("needs WebKitGTK 4.1 (libwebkit2gtk-4.1-0)")
	}
	s := newScreen(t)
	d := newDesk(t)
	d.env["DISPLAY"] = s.display
	d.program(t, "xdg-open", `echo "$@" >> "$HOME/opened"`)
	return d, s, newPage(t)
}

func TestNative_ShowsThePage(t *testing.T) {
	d, s, p := newNative(t)
	w := d.open(t, "", p.URL+"/?code=one-time")
	if w.Kind() != Native {
		t.Fatalf("kind %q; log:\n%s", w.Kind(), d.logged())
	}
	p.runs(t, 1)
	if p.requests("/?code=one-time without cookie") != 1 {
		t.Errorf("requests: %q", p.got)
	}
	eventually(t, "the page is painted", func() bool { return s.pixel(t, 640, 700) == "#336699" })
	eventually(t, "the window has the page's title", func() bool { return len(s.windows(t, "Little page")) == 1 })
	for _, pid := range append(processes(t, os.Getpid(), webProcess), processes(t, os.Getpid(), filepath.Base(os.Args[0]))...) {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if pid != os.Getpid() && strings.Contains(string(cmdline)+string(environ), "one-time") || strings.Contains(string(environ), "very-secret") {
			t.Errorf("process %d shows a secret: %q %q", pid, cmdline, environ)
		}
	}

	w.Close()
	if err := w.Err(); err != nil {
		t.Error(err)
	}
	eventually(t, "WebKit's processes are gone", func() bool { return len(processes(t, os.Getpid(), webProcess)) == 0 })

	d.open(t, Native, p.URL)
	p.runs(t, 2) // the cookie was kept
	if p.requests("/ with cookie") != 2 {
		t.Errorf("requests: %q", p.got)
	}
}

func TestNative_Raise(t *testing.T) {
	d, s, p := newNative(t)
	w := d.open(t, Native, p.URL+"/?code=1")
	p.runs(t, 1)
	below := s.window(t, "Little page")
	other := newDesk(t)
	other.env["DISPLAY"] = s.display
	other.open(t, Native, p.URL+"/?code=2")
	p.runs(t, 2)
	eventually(t, "the second window covers the first", func() bool {
		stack := s.windows(t, "Little page")
		return len(stack) == 2 && stack[1] == below
	})
	if err := w.Raise(p.URL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first window is on top", func() bool { return s.windows(t, "Little page")[0] == below })
}

func TestNative_ClosedByThePerson(t *testing.T) {
	d, s, p := newNative(t)
	w := d.open(t, Native, p.URL+"/?code=1")
	p.runs(t, 1)
	s.askToClose(t, s.window(t, "Little page"))
	if err := closed(t, w); err != nil {
		t.Error(err)
	}
}

func TestNative_ClosedWhileThePageHangs(t *testing.T) {
	d, s, p := newNative(t)
	w := d.open(t, Native, p.URL+"/?code=1")
	p.runs(t, 1)
	s.click(t, 100, 175)
	eventually(t, "the page hangs", func() bool { return len(s.windows(t, "Hanging")) == 1 })
	pids := processes(t, os.Getpid(), webProcess)
	if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil { // it hangs for sure
		t.Fatal(err)
	}
	window := s.window(t, "Hanging")
	s.askToClose(t, window)
	s.askToClose(t, window)
	if err := closed(t, w); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestNative_WebProcessCrashes(t *testing.T) {
	d, _, p := newNative(t)
	w := d.open(t, Native, p.URL+"/?code=1")
	for n := 1; n <= 3; n++ {
		p.runs(t, n)
		for _, pid := range processes(t, os.Getpid(), webProcess) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := closed(t, w); err == nil || !strings.Contains(err.Error(), "the process that draws the page died") {
		t.Errorf("error: %v", err)
	}
	if got := strings.Count(d.logged(), "loading the page again"); got != 2 {
		t.Errorf("log:\n%s", d.logged())
	}
	if p.requests("/?code=1 without cookie") != 1 {
		t.Errorf("the code was used again: %q", p.got)
	}
}

func TestNative_ChildIsKilled(t *testing.T) {
	d, _, p := newNative(t)
	w := d.open(t, Native, p.URL+"/?code=1")
	p.runs(t, 1)
	children := processes(t, os.Getpid(), "tendril") // the name that GTK gives it
	children = append(children, slices.DeleteFunc(processes(t, os.Getpid(), filepath.Base(os.Args[0])), func(pid int) bool { return pid == os.Getpid() })...)
	if len(children) != 1 {
		t.Fatalf("children: %v", children)
	}
	if err := syscall.Kill(children[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := closed(t, w); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("error: %v", err)
	}
}

func TestNative_EndsWithTheHost(t *testing.T) {
	d, _, p := newNative(t)
	host := exec.Command(os.Args[0], "host", p.URL+"/?code=1", filepath.Join(d.dir, "profile"))
	host.Env = append(environment(func(name string) string { return d.env[name] }), "GOCOVERDIR="+d.dir)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	p.runs(t, 1)
	family := processes(t, host.Process.Pid, webProcess)
	family = append(family, processes(t, host.Process.Pid, filepath.Base(os.Args[0]))...)
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	eventually(t, "its window is gone", func() bool {
		return !slices.ContainsFunc(family, func(pid int) bool {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			return err == nil && !strings.Contains(string(status), "State:\tZ")
		})
	})
}

func TestNative_LinksAndDownloads(t *testing.T) {
	d, s, p := newNative(t)
	d.open(t, Native, p.URL+"/?code=1")
	p.runs(t, 1)
	s.click(t, 100, 75) // http: nothing
	s.click(t, 100, 25) // https
	eventually(t, "the link is in the default browser", func() bool { return d.read("home/opened") != "" })
	if got := d.read("home/opened"); got != "https://example.com/in\n" {
		t.Errorf("opened %q", got)
	}
	s.click(t, 100, 125)
	eventually(t, "the dialog asks", func() bool { return len(s.windows(t, "Save")) == 1 })
	// Nothing gives the dialog the focus here: keys go to the window below the pointer.
	s.run(t, "xdotool", "mousemove", "700", "100")
	eventually(t, "the export is saved", func() bool {
		if len(s.windows(t, "Save")) == 1 {
			s.run(t, "xdotool", "key", "Return")
		}
		return d.read("home/session.json") == `{"exported": true}`
	})
}

func TestNative_PassedOver(t *testing.T) {
	tests := map[string]struct {
		desk func(*testing.T, *desk, *page)
		why  string
	}{
		"no such display": {func(_ *testing.T, d *desk, _ *page) { d.env["DISPLAY"] = ":987654" }, "GTK cannot open the display"},
		"libraries that cannot be loaded": {func(t *testing.T, d *desk, _ *page) {
			if err := os.WriteFile(filepath.Join(d.dir, "libwebkit2gtk-4.1.so.0"), []byte("no library"), 0o600); err != nil {
				t.Fatal(err)
			}
			d.env["LD_LIBRARY_PATH"] = d.dir
		}, "libwebkit2gtk-4.1.so.0 cannot be loaded"},
		"nobody answers":                    {func(_ *testing.T, _ *desk, p *page) { p.Close() }, "the page cannot be loaded"},
		"no such program":                   {nil, "no such file"},
		"no native window in the program":   {nil, "this program has none"},
		"a program that ends at once":       {nil, "it ended at once"},
		"a program that says nothing of it": {nil, "exit status 3: oh"},
	}
	programs := map[string][]string{
		"no such program": {"/nonexistent/tendril"}, "no native window in the program": {},
		"a program that ends at once": {"/bin/true"}, "a program that says nothing of it": {"/bin/sh", "-c", "read x; echo nonsense; echo oh >&2; exit 3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, _, p := newNative(t)
			o := d.options(Native, p.URL+"/?code=one-time")
			if tt.desk != nil {
				tt.desk(t, d, p)
			}
			if program, ok := programs[name]; ok {
				o.Native = program
			}
			w, err := Open(t.Context(), o)
			if err == nil {
				w.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.why) || strings.Contains(err.Error(), "one-time") {
				t.Errorf("error: %v", err)
			}
		})
	}
}

// With the real Chromium, when there is one.
func TestApp_ShowsThePage(t *testing.T) {
	d, s, p := newNative(t)
	if findChromium(os.Getenv) == "" {
		t.Skip("needs Chromium or Chrome")
	}
	w := d.open(t, App, p.URL+"/?code=1")
	eventually(t, "the page runs", func() bool { return p.requests("/ with cookie") == 1 })
	eventually(t, "the page is painted", func() bool { return s.pixel(t, 640, 700) == "#336699" })
	if err := w.Raise(p.URL); err != nil {
		t.Error(err)
	}
	s.askToClose(t, s.window(t, "Little page"))
	if err := closed(t, w); err != nil {
		t.Error(err)
	}
}
