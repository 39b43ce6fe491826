package window

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// browserLimit is how long a browser may take to say that it cannot: a first one stays in the foreground.
const browserLimit = 3 * time.Second

// openBrowser opens a tab in the default browser. The URL is on a command line, which other users of the
// machine can read; there is no other way that works for all browsers. That is why its code is for one use.
func openBrowser(ctx context.Context, o Options) (*Window, error) {
	if err := tab(ctx, o.Getenv, o.URL); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	w := &Window{kind: Browser, stop: stop, closed: make(chan struct{})}
	w.raise = func(url string) error { return tab(ctx, o.Getenv, url) }
	go func() {
		<-ctx.Done()
		close(w.closed)
	}()
	return w, nil
}

// OpenBrowser opens an address in a tab of the default browser.
func OpenBrowser(ctx context.Context, address string, getenv func(string) string) error {
	return tab(ctx, getenv, address)
}

func tab(ctx context.Context, getenv func(string) string, address string) error {
	exited, err := browse(getenv, address)
	if err != nil {
		return err
	}
	limit := time.NewTimer(browserLimit)
	defer limit.Stop()
	select {
	case err := <-exited:
		return err
	case <-limit.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// browse hands an http or https address to the default browser, which outlives us. exited gets the end of
// the program that was started: at once, or when the browser ends.
func browse(getenv func(string) string, address string) (exited <-chan error, err error) {
	if err := checkURL(address); err != nil {
		return nil, err
	}
	return handOver(getenv, address)
}

// OpenFolder opens a folder, an absolute path, in the desktop's file manager.
func OpenFolder(folder string, getenv func(string) string) error {
	if _, err := handOver(getenv, folder); err != nil {
		return fmt.Errorf("the file manager cannot be opened: %w; the folder is %s", err, folder)
	}
	return nil
}

// handOver starts the desktop's opener, without keys of ours in its environment.
func handOver(getenv func(string) string, target string) (exited <-chan error, err error) {
	opener, err := browserCommand(getenv)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), opener[0], append(opener[1:], target)...)
	cmd.Env = environment(getenv)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return done, nil
}

// openLink opens a link of the app in the default browser.
func openLink(getenv func(string) string, log func(text string), address string) {
	exited, err := browse(getenv, address)
	go func() {
		if err == nil {
			err = <-exited
		}
		if err != nil {
			log("a link could not be opened in the default browser: " + err.Error())
		}
	}()
}

// browserCommand is the program that opens an address, which is its last argument.
func browserCommand(getenv func(string) string) ([]string, error) {
	switch runtime.GOOS {
	case "windows":
		return []string{filepath.Join(getenv("SystemRoot"), "System32", "rundll32.exe"), "url.dll,FileProtocolHandler"}, nil
	case "darwin":
		return []string{"/usr/bin/open"}, nil
	}
	if !hasDisplay(getenv) && getenv("BROWSER") == "" { // BROWSER: an editor's remote terminal opens it at home
		return nil, errNoDisplay
	}
	for _, opener := range [][]string{{"xdg-open"}, {"wslview"}, {"gio", "open"}} {
		if path := lookPath(getenv, opener[0]); path != "" {
			return append([]string{path}, opener[1:]...), nil
		}
	}
	return nil, errors.New("neither xdg-open nor gio is on PATH")
}

// lookPath finds a program in the folders of PATH, "" when there is none.
func lookPath(getenv func(string) string, name string) string {
	for _, folder := range filepath.SplitList(getenv("PATH")) {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
