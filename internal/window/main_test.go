package window

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain makes this binary the other programs of a test, too. They are told by an argument: their
// environment is what a window's program gets.
func TestMain(m *testing.M) {
	roles := map[string]func(args []string) error{
		"child": func([]string) error { return Serve(context.Background(), os.Stdin, os.Stdout, os.Getenv) },
		"host":  hostRole,
		"fake":  chromiumRole,
	}
	if len(os.Args) > 1 {
		if role := roles[os.Args[1]]; role != nil {
			if err := role(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// hostRole opens a native window and stays until it is killed: host URL PROFILE.
func hostRole(args []string) error {
	w, err := Open(context.Background(), Options{
		URL: args[0], Title: "Tendril", Kind: Native, ProfileDir: args[1], Native: []string{os.Args[0], "child"},
		Getenv: os.Getenv, Log: func(string) {},
	})
	if err != nil {
		return err
	}
	<-w.Closed()
	return w.Err()
}

// desk is the outside world of a window.
type desk struct {
	dir string
	env map[string]string

	mu  sync.Mutex
	log []string
}

func newDesk(t *testing.T) *desk {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	for _, folder := range []string{bin, filepath.Join(dir, "home"), filepath.Join(dir, "run")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return &desk{dir: dir, env: map[string]string{
		"PATH": bin + ":/usr/bin:/bin", "HOME": filepath.Join(dir, "home"), "XDG_RUNTIME_DIR": filepath.Join(dir, "run"),
		"DISPLAY": "", "WAYLAND_DISPLAY": "", "ANTHROPIC_API_KEY": "sk-very-secret",
		"SystemRoot": os.Getenv("SystemRoot"),
	}}
}

// program puts a shell script on PATH.
func (d *desk) program(t *testing.T, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "bin", name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// read is what a file of the desk holds, "" when there is none.
func (d *desk) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(d.dir, name))
	return string(text)
}

func (d *desk) options(kind Kind, url string) Options {
	return Options{
		URL: url, Title: "Tendril", Kind: kind, ProfileDir: filepath.Join(d.dir, "profile"), Native: []string{os.Args[0], "child"},
		Getenv: func(name string) string { return d.env[name] },
		Log: func(text string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.log = append(d.log, text)
		},
	}
}

func (d *desk) logged() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.log, "\n")
}

// open opens a window, which is closed at the end of the test.
func (d *desk) open(t *testing.T, kind Kind, url string) *Window {
	t.Helper()
	w, err := Open(t.Context(), d.options(kind, url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// closed waits until a window is gone and returns why.
func closed(t *testing.T, w *Window) error {
	t.Helper()
	select {
	case <-w.Closed():
		return w.Err()
	case <-time.After(time.Minute):
		t.Fatal("the window is still open")
		return nil
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("did not happen: " + what)
		}
	}
}
