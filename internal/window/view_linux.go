//go:build linux && (amd64 || arm64)

package window

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"time"

	"github.com/ebitengine/purego"
)

const (
	defaultWidth, defaultHeight = 1280, 800
	minWidth, minHeight         = 900, 600
)

// view is the window. It belongs to GTK's thread.
type view struct {
	lib    *library
	out    *reporter
	getenv func(string) string
	origin *url.URL

	window, web object
	at          string // the page that is shown, for a reload after a crash
	shown       bool
	closing     bool // the page was asked whether it may be closed, and has not answered
	crashes     []time.Time
	err         error // why the window ends, nil: it was closed

	destination, downloadFailed uintptr // callbacks of each download
}

// show opens the window and returns when it is gone. The thread stays GTK's.
func show(ctx context.Context, r request, origin *url.URL, later <-chan order, out *reporter, getenv func(string) string) error {
	runtime.LockOSThread()
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	lib.SetPrgname("tendril") // the name of a .desktop file: desktops group windows and find icons by it
	lib.SetAppName(r.Title)
	if !lib.GTKInit(0, 0) { // gtk_init would end the process
		return errors.New("GTK cannot open the display")
	}
	v := &view{lib: lib, out: out, getenv: getenv, origin: origin, at: r.URL}
	v.build(ctx, r)
	lib.ShowAll(v.window) // before the page, which would find itself in a window of no size
	lib.ViewLoad(v.web, r.URL)
	go v.obey(ctx, later)
	lib.Main()
	lib.Destroy(v.window)
	return v.err
}

// obey carries out orders until their end, which closes the window. It runs beside GTK's thread.
func (v *view) obey(ctx context.Context, later <-chan order) {
	raise, closed := v.idle(func() { v.lib.WindowPresent(v.window) }), v.idle(func() { v.quit(nil) })
	for more := true; more; {
		var next order
		select {
		case next, more = <-later:
			if next.Raise {
				v.lib.IdleAdd(raise, 0)
			}
		case <-ctx.Done():
			more = false
		}
	}
	// Our parent may be dead: when GTK hangs nobody else ends this process.
	time.AfterFunc(closeLimit, func() { os.Exit(1) })
	v.lib.IdleAdd(closed, 0)
}

// idle makes a callback of what is to be done once on GTK's thread.
func (v *view) idle(what func()) uintptr {
	return purego.NewCallback(func(uintptr) uintptr {
		what()
		return 0 // G_SOURCE_REMOVE
	})
}

func (v *view) quit(err error) {
	if v.err == nil {
		v.err = err
	}
	v.lib.Quit()
}

// build makes the window.
func (v *view) build(ctx context.Context, r request) {
	const toplevel, sqlite, noProxy = 0, 1, 1
	lib := v.lib
	manager := lib.newDataManager(r.Data)
	lib.ManagerProxy(manager, noProxy, 0) // only our own host is asked
	webContext := lib.ContextNew(manager)
	lib.Sandbox(webContext, canSandbox(ctx, v.getenv))
	lib.CookieFile(lib.Cookies(webContext), r.Data+"/cookies.sqlite", sqlite)
	v.web = lib.ViewNew(webContext)
	v.window = lib.WindowNew(toplevel)
	lib.WindowTitle(v.window, r.Title)
	lib.WindowDefaultSize(v.window, defaultWidth, defaultHeight)
	lib.SizeRequest(v.web, minWidth, minHeight)
	lib.Add(v.window, v.web)
	lib.GrabFocus(v.web)

	lib.connect(v.window, "delete-event", v.deleteEvent)
	lib.connect(v.web, "close", v.pageClosed)
	lib.connect(v.web, "script-dialog", v.pageAsks)
	lib.connect(v.web, "decide-policy", v.decidePolicy)
	lib.connect(v.web, "load-changed", v.loadChanged)
	lib.connect(v.web, "load-failed", v.loadFailed)
	lib.connect(v.web, "notify::title", v.titleChanged)
	lib.connect(v.web, "web-process-terminated", v.crashed)
	lib.connect(webContext, "download-started", v.downloadStarted)
	v.destination = purego.NewCallback(v.decideDestination)
	v.downloadFailed = purego.NewCallback(v.downloadEnded)
}

// deleteEvent answers the window manager's wish to close. The page may ask about unsaved work first; a
// second wish is final, for a page that hangs.
func (v *view) deleteEvent(object) uintptr {
	if v.closing {
		v.quit(nil)
	} else {
		v.closing = true
		v.lib.ViewTryClose(v.web)
	}
	return 1 // we destroy the window ourselves
}

// pageAsks notes that the page answers: it may be asking whether to stay. WebKit shows the question.
func (v *view) pageAsks(object) uintptr {
	v.closing = false
	return 0
}

func (v *view) pageClosed(object) uintptr {
	v.quit(nil)
	return 0
}

func (v *view) loadChanged(_ object, event int32) uintptr {
	v.fixSignals()
	const committed = 2
	if event != committed {
		return 0
	}
	v.at = v.lib.ViewURI(v.web)
	if !v.shown {
		v.shown = true
		v.out.send(report{Shown: true})
	}
	return 0
}

func (v *view) loadFailed(object, int32) uintptr {
	if v.shown {
		return 0 // WebKit shows its own page about it
	}
	v.quit(errors.New("the page cannot be loaded"))
	return 1
}

func (v *view) titleChanged(object) uintptr {
	if title := v.lib.ViewTitle(v.web); title != "" {
		v.lib.WindowTitle(v.window, title)
	}
	return 0
}

// crashed loads the page again when the process that draws it has died; after three times in 30 s it gives up.
func (v *view) crashed(_ object, reason int32) uintptr {
	err := fmt.Errorf("the process that draws the page died (reason %d of WebKitWebProcessTerminationReason)", reason)
	now := time.Now()
	v.crashes = append(v.crashes, now)
	if n := len(v.crashes); !v.shown || n >= 3 && now.Sub(v.crashes[n-3]) < 30*time.Second {
		v.quit(err)
		return 0
	}
	v.out.send(report{Log: err.Error() + "; loading the page again"})
	v.lib.ViewLoad(v.web, v.at)
	return 0
}
