// Package web is the built user interface. `make web` builds it into dist, which
// git ignores; without it the package compiles all the same, and holds no UI.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// FS is the built UI, with index.html at its root. It reports false when none was
// built, as in a fresh clone.
func FS() (fs.FS, bool) {
	ui, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, false
	}
	if _, err = fs.Stat(ui, "index.html"); err != nil {
		return nil, false
	}
	return ui, true
}
