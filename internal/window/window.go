// Package window shows the app to a person: in a native window, else in a browser's app mode, else in
// the default browser.
package window

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Kind is how the app is shown.
type Kind string

// The kinds, the best first.
const (
	Native  Kind = "native"  // a window of our own: GTK 3 and WebKitGTK 4.1 in a child process (Linux)
	App     Kind = "app"     // a window of Chromium, Chrome or Edge without tabs and address bar
	Browser Kind = "browser" // a tab in the default browser
)

const (
	openLimit  = 30 * time.Second // from the start of a window's process until it shows its page
	closeLimit = 5 * time.Second  // from the wish to close until the process is killed
)

// Options say what to show, and with what.
type Options struct {
	URL   string // http or https. It may hold a one-time code: it is never logged, and in no error
	Title string // of the window until the page has one
	Kind  Kind   // the only one to try; empty: all, the best first

	ProfileDir string                   // holds cookies and storage of our windows; made when it is missing
	Native     []string                 // program and arguments of a process that calls [Serve]; empty: no native window
	Getenv     func(name string) string // never nil; of it only what a desktop program needs is handed on
	Log        func(text string)        // why a kind was passed over, and troubles of an open window; never nil
}

// Window is an app that is shown. Its methods can be called from any goroutine.
type Window struct {
	kind   Kind
	raise  func(url string) error
	stop   context.CancelFunc
	closed chan struct{}
	err    error // set before closed is closed
}

// Open shows a URL. When a kind cannot be opened the next one is tried; the error has the reasons of
// all, and says what to do. The window closes when ctx is done.
func Open(ctx context.Context, o Options) (*Window, error) {
	if err := checkURL(o.URL); err != nil {
		return nil, err
	}
	ways := []struct {
		kind Kind
		open func(context.Context, Options) (*Window, error)
	}{{Native, openNative}, {App, openApp}, {Browser, openBrowser}}

	var reasons []string
	for _, way := range ways {
		if o.Kind != "" && o.Kind != way.kind {
			continue
		}
		w, err := way.open(ctx, o)
		if err == nil {
			return w, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		reason := fmt.Sprintf("%s: %v", way.kind, err)
		o.Log("no window of kind " + reason)
		reasons = append(reasons, reason)
	}
	if reasons == nil {
		return nil, fmt.Errorf("unknown kind of window %q; use %s, %s or %s", o.Kind, Native, App, Browser)
	}
	return nil, fmt.Errorf("no window could be opened (%s); open the app's address in a browser yourself", strings.Join(reasons, "; "))
}

// Kind is the kind that was opened.
func (w *Window) Kind() Kind { return w.kind }

// Raise brings the window forward. The default browser cannot be told to: it opens url, which should
// hold a fresh one-time code.
func (w *Window) Raise(url string) error {
	select {
	case <-w.closed:
		return errors.New("the window is closed")
	default:
	}
	if err := checkURL(url); err != nil {
		return err
	}
	return w.raise(url)
}

// Closed is closed when the window is gone: the person closed it, Close was called, ctx is done or it
// crashed. What becomes of a tab in the default browser is not known: it counts as open until Close.
func (w *Window) Closed() <-chan struct{} { return w.closed }

// Err says why the window is gone. It is nil while it is open, and when it was closed on purpose.
func (w *Window) Err() error {
	select {
	case <-w.closed:
		return w.err
	default:
		return nil
	}
}

// Close closes the window and waits until its process has ended. A tab in the default browser stays.
func (w *Window) Close() {
	w.stop()
	<-w.closed
}

// checkURL keeps out what a browser's command line would take for something else.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the address of the app is no http or https URL") // it may hold a code: not shown
	}
	return nil
}
