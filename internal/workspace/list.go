package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxEntries is how many entries of a folder are listed.
const maxEntries = 5000

// Kind is what an entry of a folder is.
type Kind string

// The kinds. A link is told as one, wherever it leads.
const (
	KindFile   Kind = "file"
	KindFolder Kind = "folder"
	KindLink   Kind = "link"
	KindOther  Kind = "other" // a pipe, a socket, a device
)

// Folder is a folder's list of entries.
type Folder struct {
	Path    string
	Entries []Entry // folders first, then by name; at most 5,000
	Omitted int     // how many entries were left out at the end
}

// Entry is an entry of a folder.
type Entry struct {
	Name     string // U+FFFD stands for what is no UTF-8
	Path     string // to give to List, ReadText and the others; "" when no path can name it
	Kind     Kind
	Size     int64 // in bytes, of a file
	Modified time.Time
	ReadOnly string // why it cannot be written here, or opened at all; "" when nothing is known to be in the way
}

// List lists a folder; "" is the workspace. A link to a folder of the workspace
// is listed as that folder, under the link's path. An error matches [ErrPath],
// [fs.ErrNotExist] or what the system says.
func (w *Workspace) List(path string) (Folder, error) {
	p, err := w.find(path)
	if err != nil {
		return Folder{}, err
	}
	defer p.close()
	if err := p.enterFolder(); err != nil {
		return Folder{}, err
	}
	found, omitted, err := p.readFolder()
	if err != nil {
		return Folder{}, p.failed(err)
	}
	list := Folder{Path: path, Omitted: omitted, Entries: make([]Entry, 0, len(found))}
	for _, e := range found {
		if info, err := p.last().Lstat(e.Name()); err == nil { // else it is gone
			list.Entries = append(list.Entries, w.entry(p, e.Name(), info))
		}
	}
	return list, nil
}

// readFolder returns the first entries of a folder in their order, and how many
// more there are. It never holds many more than it returns.
func (p *place) readFolder() (found []fs.DirEntry, omitted int, err error) {
	dir, err := p.last().Open(".")
	if err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	for err == nil {
		var some []fs.DirEntry
		some, err = dir.ReadDir(maxEntries)
		found = append(found, some...)
		slices.SortFunc(found, compareEntries)
		if more := len(found) - maxEntries; more > 0 {
			found, omitted = found[:maxEntries], omitted+more
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return found, omitted, nil
}

// compareEntries orders folders before the rest, each by name.
func compareEntries(a, b fs.DirEntry) int {
	switch {
	case a.IsDir() && !b.IsDir():
		return -1
	case b.IsDir() && !a.IsDir():
		return 1
	}
	return cmp.Compare(a.Name(), b.Name())
}

// entry describes an entry of the folder that p is.
func (w *Workspace) entry(p *place, name string, info fs.FileInfo) Entry {
	e := Entry{Name: name, Kind: kindOf(info.Mode()), Modified: info.ModTime()}
	if e.Kind == KindFile {
		e.Size = info.Size()
	}
	e.Path = path.Join(p.path, name)
	if _, err := parse(e.Path); err != nil || !utf8.ValidString(name) {
		e.Name, e.Path = strings.ToValidUTF8(name, "\uFFFD"), ""
		e.ReadOnly = whyNot(err)
		return e
	}
	at := place{path: e.Path, folders: p.folders, name: name, info: info, marks: p.marks, protected: p.protected}
	e.ReadOnly = at.readOnly()
	switch {
	case e.ReadOnly != "":
	case e.Kind == KindLink:
		e.ReadOnly = w.linked(e.Path)
	case e.Kind == KindOther:
		e.ReadOnly = "is " + kindName(info.Mode()) + " and no file"
	}
	return e
}

// linked is why what a link leads to cannot be written, or "".
func (w *Workspace) linked(path string) string {
	target, err := w.find(path)
	if err != nil {
		return whyNot(err)
	}
	defer target.close()
	return target.readOnly()
}

// whyNot is the error of a place without its path.
func whyNot(err error) string {
	var path *PathError
	if errors.As(err, &path) {
		return path.Why
	}
	return "it cannot be opened"
}

func kindOf(mode fs.FileMode) Kind {
	switch {
	case mode.IsRegular():
		return KindFile
	case mode.IsDir():
		return KindFolder
	case mode&fs.ModeSymlink != 0:
		return KindLink
	}
	return KindOther
}

// Reveal returns the absolute path of a folder, or of the folder that a file is
// in, for the system's file manager. No link is in it below the workspace.
func (w *Workspace) Reveal(path string) (string, error) {
	p, err := w.find(path)
	if err != nil {
		return "", err
	}
	defer p.close()
	if p.name != "" && p.info == nil {
		return "", p.failed(fs.ErrNotExist)
	}
	if p.info != nil && p.info.IsDir() {
		if err := p.enterFolder(); err != nil {
			return "", err
		}
	}
	folder := w.path
	for _, f := range p.folders[1:] {
		folder = filepath.Join(folder, f.name)
	}
	if info, err := os.Stat(folder); err != nil || !os.SameFile(info, p.last().info) {
		return "", fmt.Errorf("%s cannot be shown: %w", shown(path), errMoved)
	}
	return folder, nil
}
