package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// ErrChanged means that a file is not what was read: see [ChangedError].
var ErrChanged = errors.New("the file has changed")

// ChangedError is a save that would have overwritten what somebody else wrote.
// It matches [ErrChanged].
type ChangedError struct {
	Path    string
	Version string // of the file now; "" when it is gone
}

func (e *ChangedError) Error() string {
	if e.Version == "" {
		return fmt.Sprintf("%s is not saved: the file is gone; save it as a new one, or let it go", shown(e.Path))
	}
	return fmt.Sprintf("%s is not saved: on disk there is another text now; compare the two, then save again or load that one", shown(e.Path))
}

func (e *ChangedError) Unwrap() error { return ErrChanged }

// WriteText replaces the text of a file in one step and returns its new version.
// version is that of the text it replaces, as ReadText returned it; "" makes a
// new file (mode 0644; the folder exists) and replaces nothing. A link is
// followed and stays. An error means that the file is as it was, but for
// [ErrNotSynced], with which the new version is returned; it matches
//   - [ErrChanged] when the file is of another version, is gone, or is there;
//   - [ErrGate] or [ErrReadOnly] when it cannot be written here;
//   - [ErrContent] when one of the two is no text, or too large;
//   - [ErrPath] or [fs.ErrNotExist] when there is no such place;
//
// or what the system says, such as that the disk is full. Saves through one
// Workspace never overwrite each other; that another program writes in the
// moment between the last look and the replacement cannot be told.
func (w *Workspace) WriteText(path, text, version string) (string, error) {
	if err := checkText(path, text); err != nil {
		return "", err
	}
	p, err := w.find(path)
	if err != nil {
		return "", err
	}
	defer p.close()
	if err := p.checkWrite(); err != nil {
		return "", err
	}
	old, err := p.expect(version)
	if err != nil {
		return "", err
	}
	if why := notPortable(p.name); old == nil && why != "" {
		return "", p.refuse(why + "; choose another name")
	}
	return w.save(p, []byte(text), version, old)
}

// expect checks that the file is of a version, and can be written; it returns
// what it is now, or nil when a new file is expected.
func (p *place) expect(version string) (fs.FileInfo, error) {
	file, info, err := p.read(os.O_RDWR)
	switch {
	case errors.Is(err, fs.ErrNotExist) && version == "":
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &ChangedError{Path: p.path}
	case err != nil:
		return nil, saveError(p.path, err)
	case file.TooLarge || file.Binary:
		return nil, fmt.Errorf("%s is not saved: what is there is binary or too large, and %w", shown(p.path), ErrContent)
	case file.Version != version:
		return nil, &ChangedError{Path: p.path, Version: file.Version}
	}
	return info, nil
}

// save writes the text beside the file, and puts it in its place if that is
// still what it was.
func (w *Workspace) save(p *place, text []byte, expected string, old fs.FileInfo) (string, error) {
	temp := temporary("save")
	if err := stage(p.last().Root, temp, text, old); err != nil {
		return "", saveError(p.path, err)
	}
	if err := w.replace(p, temp, expected); err != nil {
		_ = p.last().Remove(temp) // there is nothing to say that the error does not
		return "", saveError(p.path, err)
	}
	if err := syncFolder(p.last().Root); err != nil {
		return version(text), fmt.Errorf("%s %w: %w", shown(p.path), ErrNotSynced, reason(err))
	}
	return version(text), nil
}

// ErrNotSynced means that a file has its new text, but that the system could not
// promise that it lasts.
var ErrNotSynced = errors.New("is saved, but may be the old one after a power failure")

// stage writes a new file durably. It gets the permissions of old.
func stage(root *os.Root, name string, data []byte, old fs.FileInfo) error {
	mode := fs.FileMode(0o644)
	if old != nil {
		mode = 0o600 // until it is known to have those of old
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = root.Remove(name)
	}
	return err
}

// replace gives the staged file its name.
func (w *Workspace) replace(p *place, temp, expected string) error {
	w.saving.Lock()
	defer w.saving.Unlock()
	if _, err := p.expect(expected); err != nil {
		return err
	}
	if expected == "" {
		err := p.last().Link(temp, p.name) // unlike a rename it replaces nothing
		if err == nil {
			_ = p.last().Remove(temp) // the file is there by now
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			_, changed := p.expect(expected)
			return cmp.Or(changed, err)
		}
	} // some file systems have no such links
	return p.last().Rename(temp, p.name)
}

// syncFolder makes a rename last. Windows has no such call.
func syncFolder(root *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// saveError says what to do about an error of the system. Errors of ours stay.
func saveError(path string, err error) error {
	var cause syscall.Errno
	switch {
	case errors.Is(err, ErrChanged), errors.Is(err, ErrPath), errors.Is(err, ErrContent), !errors.As(err, &cause):
		return err
	case errors.Is(cause, syscall.ENOSPC), errors.Is(cause, syscall.EDQUOT):
		return fmt.Errorf("%s is not saved: %w; free some space, then save again: the file on disk is as it was", shown(path), cause)
	case errors.Is(cause, fs.ErrPermission), errors.Is(cause, syscall.EROFS):
		return fmt.Errorf("%s is not saved: %w: %w; make the file and its folder writable, then save again", shown(path), ErrReadOnly, cause)
	}
	return fmt.Errorf("%s is not saved: %w", shown(path), cause)
}
