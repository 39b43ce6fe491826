package window

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// chromiumRole is a browser that keeps to the DevTools protocol and has no window: fake MODE FLAG...
// It writes its flags and what it is told into its profile.
func chromiumRole(args []string) error {
	mode, flags := args[0], args[1:]
	profile := ""
	for _, flag := range flags {
		if value, ok := strings.CutPrefix(flag, "--user-data-dir="); ok {
			profile = value
		}
	}
	if err := os.WriteFile(filepath.Join(profile, "flags"), []byte(strings.Join(flags, "\n")), 0o600); err != nil {
		return err
	}
	told, err := os.Create(filepath.Join(profile, "told"))
	if err != nil {
		return err
	}
	in, out := os.NewFile(3, "in"), os.NewFile(4, "out")
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\x00", args...) }
	for r := bufio.NewReader(in); ; {
		text, err := r.ReadBytes(0)
		if errors.Is(err, io.EOF) {
			return told.Close() // as the real one: it ends with its pipe
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(told, "%s\n", bytes.TrimSuffix(text, []byte{0}))
		var m message
		if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
			return err
		}
		switch m.Method {
		case "Target.setDiscoverTargets":
			if mode == "refuses" {
				say(`{"id":%d,"error":{"code":-32000,"message":"not allowed"}}`, m.ID)
				continue
			}
			say(`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"W","type":"service_worker","url":"http://x"}}}`)
			say(`{"id":%d,"result":{}}`, m.ID)
			say(`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"P","type":"page","url":"data:text/html,<title>Tendril</title>"}}}`)
		case "Target.attachToTarget":
			say(`{"id":%d,"result":{"sessionId":"S"}}`, m.ID)
		case "Page.navigate":
			if mode == "unreachable" {
				say(`{"id":%d,"sessionId":"S","result":{"frameId":"P","errorText":"net::ERR_CONNECTION_REFUSED"}}`, m.ID)
				continue
			}
			say(`{"id":%d,"sessionId":"S","result":{"frameId":"P"}}`, m.ID)
			for _, page := range []string{"https://example.com/a", "http://example.com/b", "http://127.0.0.1:4711/c", "about:blank"} {
				say(`{"method":"Target.targetInfoChanged","params":{"targetInfo":{"targetId":%q,"type":"page","url":%q}}}`, page, page)
				say(`{"method":"Target.targetInfoChanged","params":{"targetInfo":{"targetId":%q,"type":"page","url":%q}}}`, page, page)
			}
		case "Target.activateTarget":
			switch mode {
			case "closes":
				say(`{"method":"Target.targetDestroyed","params":{"targetId":"P"}}`)
			case "crashes":
				return errors.New("the graphics card is on fire")
			}
		}
	}
}

func fakeChromium(t *testing.T, mode string) *desk {
	t.Helper()
	unix(t)
	d := newDesk(t)
	d.env["DISPLAY"] = ":1"
	d.program(t, "google-chrome-stable", fmt.Sprintf(`env > "$HOME/env"; exec %q fake %s "$@"`, os.Args[0], mode))
	d.program(t, "xdg-open", `echo "$@" >> "$HOME/opened"`)
	return d
}

func TestApp_FlagsAndURL(t *testing.T) {
	d := fakeChromium(t, "stays")
	w := d.open(t, "", address) // no native one: there is no such display
	if w.Kind() != App {
		t.Fatalf("kind %q; log:\n%s", w.Kind(), d.logged())
	}
	if err := w.Raise(address); err != nil {
		t.Error(err)
	}
	eventually(t, "the window is raised", func() bool {
		return strings.Contains(d.read("profile/chromium/told"), `"Target.activateTarget","params":{"targetId":"P"}`)
	})
	flags := strings.Split(d.read("profile/chromium/flags"), "\n")
	for _, want := range []string{"--app=data:text/html,<title>Tendril</title>", "--user-data-dir=" + filepath.Join(d.dir, "profile", "chromium"), "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-sync", "--window-size=1280,800"} {
		if !slices.Contains(flags, want) {
			t.Errorf("flag %s is missing", want)
		}
	}
	if strings.Contains(strings.Join(flags, " "), "one-time") {
		t.Errorf("the code is on the command line: %s", flags)
	}
	if slices.Contains(flags, "--no-sandbox") != (os.Geteuid() == 0) {
		t.Errorf("sandbox of user %d: %s", os.Geteuid(), flags)
	}
	if told := d.read("profile/chromium/told"); !strings.Contains(told, `"sessionId":"S","method":"Page.navigate","params":{"url":"`+address+`"}`) {
		t.Errorf("told:\n%s", told)
	}
	if env := d.read("home/env"); strings.Contains(env, "secret") || strings.Contains(env, "one-time") {
		t.Errorf("environment of the browser:\n%s", env)
	}
	if info, err := os.Stat(filepath.Join(d.dir, "profile")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the profile: %v, %v", info, err)
	}
	w.Close()
	if err := w.Err(); err != nil {
		t.Error(err)
	}
}

func TestApp_SendsOtherPagesAway(t *testing.T) {
	d := fakeChromium(t, "stays")
	d.open(t, App, address)
	closes := func() int { return strings.Count(d.read("profile/chromium/told"), "Target.closeTarget") }
	eventually(t, "two pages are closed", func() bool { return closes() >= 2 })
	eventually(t, "the https page is in the default browser", func() bool { return d.read("home/opened") != "" })
	if told := d.read("profile/chromium/told"); closes() != 2 || !strings.Contains(told, `{"targetId":"https://example.com/a"}`) || !strings.Contains(told, `{"targetId":"http://example.com/b"}`) {
		t.Errorf("told:\n%s", told)
	}
	if got := d.read("home/opened"); got != "https://example.com/a\n" {
		t.Errorf("opened %q", got)
	}
}

func TestApp_Ends(t *testing.T) {
	for mode, want := range map[string]string{"closes": "", "crashes": "exit status 1: the graphics card is on fire"} {
		t.Run(mode, func(t *testing.T) {
			d := fakeChromium(t, mode)
			w := d.open(t, App, address)
			if err := w.Raise(address); err != nil {
				t.Fatal(err)
			}
			if err := closed(t, w); fmt.Sprint(err) != want && (err != nil || want != "") {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

func TestApp_CannotOpen(t *testing.T) {
	for mode, want := range map[string]string{"refuses": "not allowed", "unreachable": "net::ERR_CONNECTION_REFUSED"} {
		t.Run(mode, func(t *testing.T) {
			d := fakeChromium(t, mode)
			w, err := Open(t.Context(), d.options("", address))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if w.Kind() != Browser || !strings.Contains(d.logged(), want) {
				t.Errorf("kind %q, log:\n%s", w.Kind(), d.logged())
			}
		})
	}
}

func TestApp_PassesOverSnaps(t *testing.T) {
	d := fakeChromium(t, "stays")
	bin := filepath.Join(d.dir, "bin")
	d.program(t, "snap", "exit 1")
	if err := os.Remove(filepath.Join(bin, "google-chrome-stable")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("snap", filepath.Join(bin, "google-chrome")); err != nil {
		t.Fatal(err)
	}
	d.program(t, "microsoft-edge", "")
	d.env["PATH"] = bin
	if got := findChromium(func(name string) string { return d.env[name] }); got != filepath.Join(bin, "microsoft-edge") {
		t.Errorf("found %q", got)
	}
}

func FuzzDevtools(f *testing.F) {
	f.Add([]byte("{\"id\":1,\"result\":{}}\x00{\"method\":\"Target.targetCreated\",\"params\":{\"targetInfo\":{\"targetId\":\"P\",\"type\":\"page\",\"url\":\"data:text/html,\"}}}\x00"))
	f.Add([]byte("{\"id\":1,\"result\":{}}\x00{\"method\":\"Target.targetCreated\",\"params\":{\"targetInfo\":{\"targetId\":\"P\",\"type\":\"page\",\"url\":\"data:text/html,\"}}}\x00" +
		"{\"id\":2,\"result\":{\"sessionId\":\"S\"}}\x00{\"id\":3,\"result\":{}}\x00{\"method\":\"Target.targetInfoChanged\",\"params\":{\"targetInfo\":{\"targetId\":\"Q\",\"type\":\"page\",\"url\":\"https://x\"}}}\x00"))
	f.Add([]byte("{\"method\":\"Target.targetCreated\",\"params\":7}\x00"))
	f.Add([]byte("\x00\x00{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		origin, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		d := &devtools{r: bufio.NewReader(bytes.NewReader(text)), w: io.Discard, origin: origin, sent: map[string]bool{}, browse: func(address string) {
			if !strings.HasPrefix(strings.ToLower(address), "https://") {
				t.Errorf("browsed %q", address)
			}
		}}
		if d.open(address) != nil {
			return
		}
		if d.page == "" {
			t.Error("opened without a page")
		}
		d.follow()
	})
}
