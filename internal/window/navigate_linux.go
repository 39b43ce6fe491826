//go:build linux && (amd64 || arm64)

package window

import (
	"cmp"
	"path/filepath"
	"unsafe"
)

// decidePolicy judges each navigation, and what is not for a window becomes a download.
func (v *view) decidePolicy(_, decision object, kind int32) uintptr {
	const navigation, newWindow = 0, 1
	lib := v.lib
	if kind != navigation && kind != newWindow { // a response
		if lib.Showable(decision) {
			return 0
		}
		lib.Download(decision)
		return 1
	}
	action := lib.Action(decision)
	target := lib.RequestURI(lib.ActionAsk(action))
	verdict := decide(v.origin, target, lib.ActionClick(action))
	if verdict == load && kind == navigation {
		return 0 // WebKit knows whether it is a link that downloads
	}
	lib.Ignore(decision)
	switch verdict {
	case load: // we have one window
		lib.ViewLoad(v.web, target)
	case external:
		openLink(v.getenv, func(text string) { v.out.send(report{Log: text}) }, target)
	}
	return 1
}

func (v *view) downloadStarted(_, download object) uintptr {
	v.lib.Connect(download, "decide-destination", v.destination, 0, 0, 0)
	v.lib.Connect(download, "failed", v.downloadFailed, 0, 0, 0)
	return 0
}

// decideDestination asks the person where to save a download.
func (v *view) decideDestination(download object, suggested *byte) uintptr {
	const save, accepted, downloads = 1, -3, 2
	lib := v.lib
	chooser := lib.ChooserNew("Save", v.window, save, 0, 0)
	defer lib.Unref(chooser)
	lib.ChooserConfirm(chooser, true)
	lib.ChooserFolder(chooser, cmp.Or(lib.DownloadsDir(downloads), v.getenv("HOME")))
	lib.ChooserName(chooser, filepath.Base(goString(suggested)))
	if lib.ChooserRun(chooser) != accepted {
		lib.SaveCancel(download)
		return 1
	}
	uri := lib.ChooserURI(chooser)
	defer lib.Free(uri)
	lib.SaveOver(download, true) // the person confirmed it
	lib.SaveTo(download, uri)
	return 1
}

// downloadEnded tells of a download that failed; one that the person cancelled is no trouble.
func (v *view) downloadEnded(_ object, failure *struct { // GError
	domain  uint32
	code    int32
	message *byte
}) uintptr {
	const cancelled = 400 // WEBKIT_DOWNLOAD_ERROR_CANCELLED_BY_USER
	if failure != nil && failure.code != cancelled {
		v.out.send(report{Log: "a download failed: " + goString(failure.message)})
	}
	return 0
}

// goString copies a C string.
func goString(s *byte) string {
	if s == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(s, n))
}
