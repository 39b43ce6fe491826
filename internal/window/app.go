package window

import (
	"bufio"
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// openApp opens a window of a browser of the Chromium family, with a profile of its own. The browser is led
// through a pipe (see [devtools]), so that the URL is on no command line, the window can be raised, and it
// ends with us.
func openApp(ctx context.Context, o Options) (*Window, error) {
	if !hasDisplay(o.Getenv) {
		return nil, errNoDisplay
	}
	program := findChromium(o.Getenv)
	if program == "" {
		return nil, errors.New("no Chromium, Chrome or Edge was found")
	}
	origin, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	profile := filepath.Join(o.ProfileDir, "chromium")
	if err := os.MkdirAll(profile, 0o700); err != nil {
		return nil, err
	}
	child, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(child, program, appFlags(profile, o.Title)...)
	cmd.Env = environment(o.Getenv)
	pipes, err := newPipes(cmd)
	if err != nil {
		stop()
		return nil, err
	}
	p, err := start(child, stop, cmd, pipes, func(err error, said string) error { return crash(err, said, o.URL) })
	pipes.started()
	if err != nil {
		pipes.Close()
		return nil, err
	}
	d := &devtools{r: bufio.NewReader(pipes.from), w: pipes.to, origin: origin, sent: map[string]bool{}, browse: func(address string) { openLink(o.Getenv, o.Log, address) }}
	shown := make(chan error, 1)
	go func() {
		defer pipes.Close()
		err := d.open(o.URL)
		shown <- err
		if err == nil && d.follow() {
			stop() // on macOS a browser outlives its last window
		}
	}()
	if err := p.await(ctx, shown); err != nil {
		return nil, err
	}
	return p.window(App, func(string) error { return d.raise() }), nil
}

// appFlags are the flags of an app window that asks no questions and talks to nobody but the app.
func appFlags(profile, title string) []string {
	flags := []string{
		"--app=" + placeholder + "<title>" + escapeTitle(title) + "</title>", // until devtools goes to the URL
		"--user-data-dir=" + profile, "--remote-debugging-pipe", "--window-size=1280,800",
		"--no-first-run", "--no-default-browser-check", "--no-service-autorun", "--disable-search-engine-choice-screen",
		"--disable-background-networking", "--disable-background-mode", "--disable-component-update", "--disable-default-apps",
		"--disable-sync", "--disable-breakpad", "--disable-domain-reliability", "--disable-client-side-phishing-detection",
		"--hide-crash-restore-bubble", "--no-pings", "--metrics-recording-only", "--disable-extensions",
		"--password-store=basic", "--use-mock-keychain", // it stores no passwords: no questions about a key ring
		"--disable-features=Translate,OptimizationHints,MediaRouter,AutofillServerCommunication,InterestFeedContentSuggestions",
	}
	if runtime.GOOS == "linux" {
		flags = append(flags, "--class=tendril") // the name of a .desktop file, as for the native window
	}
	if runtime.GOOS == "linux" && os.Geteuid() == 0 {
		flags = append(flags, "--no-sandbox") // it does not start as root otherwise
	}
	return flags
}

// escapeTitle makes a title safe inside of HTML inside of a data URL.
func escapeTitle(title string) string {
	return strings.NewReplacer("%", "", "#", "", "&", "", "<", "").Replace(title)
}

// findChromium is the path of an installed browser, "" when there is none.
func findChromium(getenv func(string) string) string {
	switch runtime.GOOS {
	case "windows":
		return firstFile(windowsPrograms(getenv))
	case "darwin":
		var paths []string
		for _, name := range []string{"Google Chrome", "Chromium", "Microsoft Edge"} {
			path := filepath.Join("/Applications", name+".app", "Contents", "MacOS", name)
			paths = append(paths, path, getenv("HOME")+path)
		}
		return firstFile(paths)
	}
	for _, name := range []string{"google-chrome-stable", "google-chrome", "chromium", "chromium-browser", "microsoft-edge-stable", "microsoft-edge"} {
		path := lookPath(getenv, name)
		real, err := filepath.EvalSymlinks(path)
		if path != "" && err == nil && filepath.Base(real) != "snap" { // a snap sees no hidden folder, where our profile may be
			return path
		}
	}
	return firstFile([]string{"/opt/google/chrome/chrome", "/usr/lib/chromium/chromium", "/opt/microsoft/msedge/msedge"})
}

func windowsPrograms(getenv func(string) string) []string {
	var paths []string
	for _, program := range []string{`Google\Chrome\Application\chrome.exe`, `Chromium\Application\chrome.exe`, `Microsoft\Edge\Application\msedge.exe`} {
		for _, folder := range []string{"ProgramFiles", "ProgramFiles(x86)", "LOCALAPPDATA"} {
			if folder := getenv(folder); folder != "" {
				paths = append(paths, filepath.Join(folder, program))
			}
		}
	}
	return paths
}

func firstFile(paths []string) string {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}
