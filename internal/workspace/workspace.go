// Package workspace is the folder that the person chose. What is in it comes
// from anywhere, so it is reached without following links out of it.
package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// displayCopy is the file with the system prompt, for people to read. Nothing
// reads it back.
const displayCopy = "system-prompt.txt"

// Workspace is an open workspace. It is safe for concurrent use.
type Workspace struct {
	path string
	root *os.Root

	saving sync.Mutex // held from the look at a file's version until it is replaced
}

// Open opens the workspace at an absolute path, and creates the folder with
// mode 0755 when it is missing. A folder that cannot be written is a warning:
// what is in it can still be used.
func Open(path string) (*Workspace, []string, error) {
	if !filepath.IsAbs(path) {
		return nil, nil, fmt.Errorf("workspace %q is no absolute path", path)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, nil, fmt.Errorf("the workspace cannot be created: %w; choose another folder with --workspace", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, fmt.Errorf("the workspace cannot be opened: %w; choose another folder with --workspace", err)
	}
	w := &Workspace{path: path, root: root}
	name := temporary("probe")
	if err := w.create(name, nil); err != nil {
		return w, []string{fmt.Sprintf("the workspace %s cannot be written, so nothing new is kept in it: %v", path, err)}, nil
	}
	if err := root.Remove(name); err != nil {
		return w, []string{fmt.Sprintf("in the workspace %s nothing can be removed: %v", path, err)}, nil
	}
	return w, nil, nil
}

// Path is the absolute path of the workspace.
func (w *Workspace) Path() string { return w.path }

// Close closes the workspace.
func (w *Workspace) Close() error { return w.root.Close() }

// WriteDisplayCopy replaces system-prompt.txt in one step. A link of that name
// is replaced, not followed. The file is only for display: its error is worth a
// warning and no more.
func (w *Workspace) WriteDisplayCopy(prompt string) error {
	if w.holds(prompt) {
		return nil
	}
	if !w.ours() {
		return fmt.Errorf("%s in the workspace is a file of yours: it is left alone, and the system prompt is not shown there", displayCopy)
	}
	temp := temporary(displayCopy)
	err := w.create(temp, []byte(prompt))
	if err == nil {
		err = w.root.Rename(temp, displayCopy)
	}
	if err != nil {
		_ = w.root.Remove(temp) // may never have been there
		return fmt.Errorf("the copy of the system prompt in the workspace cannot be written: %w", err)
	}
	return nil
}

// displayStart is how each copy begins, the original Tendril's too.
const displayStart = "You are Tendril"

// ours reports whether what has the copy's name may be replaced: nothing, a
// link, or an earlier copy.
func (w *Workspace) ours() bool {
	info, err := w.root.Lstat(displayCopy)
	if err != nil || !info.Mode().IsRegular() {
		return err != nil || info.Mode()&fs.ModeSymlink != 0
	}
	f, err := w.root.Open(displayCopy)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, len(displayStart))
	_, err = io.ReadFull(f, start)
	return info.Size() == 0 || err == nil && string(start) == displayStart
}

// holds reports whether the copy is up to date.
func (w *Workspace) holds(prompt string) bool {
	info, err := w.root.Lstat(displayCopy)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(prompt)) {
		return false
	}
	data, err := w.root.ReadFile(displayCopy)
	return err == nil && bytes.Equal(data, []byte(prompt))
}

// create writes a new file.
func (w *Workspace) create(name string, data []byte) error {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return reason(err)
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// reason leaves out the temporary name of a file.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// temporary is a name that no other process uses.
func temporary(name string) string { return "." + name + "." + rand.Text() + ".tmp" }
