package capability

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"syscall"
)

// The places of the registry, relative to the workspace.
const (
	toolsPath    = "tools"
	indexPath    = "tools/index.json"
	versionsPath = "tools/.versions"
	lockPath     = "tools/.versions/.lock"
	journalPath  = "tools/.versions/.journal"
	scratchPath  = "tools/.versions/.new"
)

// system is the system calls that change a folder. Names are relative to the
// workspace; [os.Root] refuses what they would lead to outside of it.
type system interface {
	Mkdir(name string, perm fs.FileMode) error
	OpenFile(name string, flag int, perm fs.FileMode) (handle, error)
	Rename(from, to string) error
	Remove(name string) error
}

// handle is a file that is open to be written, or a folder to be synced.
type handle interface {
	io.WriteCloser
	Sync() error
}

type rootSystem struct{ *os.Root }

func (s rootSystem) OpenFile(name string, flag int, perm fs.FileMode) (handle, error) {
	return s.Root.OpenFile(name, flag, perm)
}

// disk is the only way in which the registry changes its folder. What an
// operation has done lasts when it returns, also through a power cut.
type disk struct{ sys system }

// WriteFile makes a new file. What was there under this name is removed first,
// so that no link is followed. The file lasts once it is renamed.
func (d disk) WriteFile(name string, data []byte) error {
	if err := d.sys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.sys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Rename puts a file in the place of another, at once.
func (d disk) Rename(from, to string) error {
	if err := d.sys.Rename(from, to); err != nil {
		return err
	}
	return d.syncFolder(path.Dir(to))
}

// Remove removes a file or an empty folder; one that is not there is no error.
func (d disk) Remove(name string) error {
	err := d.sys.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.syncFolder(path.Dir(name))
}

// MakeFolder makes a folder in one that exists; one that is there is no error.
func (d disk) MakeFolder(name string) error {
	err := d.sys.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.syncFolder(path.Dir(name))
}

// syncFolder makes a changed folder last, where the system has such a call.
func (d disk) syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := d.sys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// replace puts data in the place of a file; readers see the old or the new
// bytes. Only the holder of the lock may: it goes through one scratch file.
func replace(d disk, name string, data []byte) error {
	err := d.WriteFile(scratchPath, data)
	if err == nil {
		err = d.Rename(scratchPath, name)
	}
	if err != nil {
		_ = d.sys.Remove(scratchPath) // a full disk needs the room; else the next writer does it
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

var errTooLarge = errors.New("is too large")

// readFile reads a regular file of at most limit bytes. A link is followed
// while it stays in the root.
func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	info, err := root.Stat(name) // before opening: to open a pipe would wait
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes and %w: at most %d are read", name, info.Size(), errTooLarge, limit)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = buf.ReadFrom(io.LimitReader(f, limit+1))
	data := buf.Bytes()
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s %w: at most %d bytes are read", name, errTooLarge, limit)
	}
	return data, err
}

// holdsBytes reports whether a regular file holds these bytes, without reading it
// into memory.
func holdsBytes(root *os.Root, name string, want []byte) bool {
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(want)) {
		return false
	}
	f, err := root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	part := make([]byte, min(len(want)+1, 64<<10))
	for {
		n, err := f.Read(part)
		if !bytes.HasPrefix(want, part[:n]) {
			return false
		}
		if want = want[n:]; err != nil {
			return err == io.EOF && len(want) == 0
		}
	}
}

// readNames lists a folder; one that is not there is empty.
func readNames(root *os.Root, name string) ([]string, error) {
	info, err := root.Stat(name) // before opening: to open a pipe would wait
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// errDiskFull is ERROR_DISK_FULL of Windows.
const errDiskFull = syscall.Errno(112)

// writeError marks, once, the errors that mean that the folder cannot be
// written, and says what to do.
func writeError(err error) error {
	switch {
	case unwritable(err):
		return err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w; make it writable, or use another workspace", ErrReadOnly, err)
	case errors.Is(err, syscall.EXDEV), errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w: %w; a part of tools is mounted from elsewhere: mount the whole workspace", ErrReadOnly, err)
	}
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, errDiskFull} {
		if errors.Is(err, full) && (full != errDiskFull || runtime.GOOS == "windows") {
			return fmt.Errorf("%w (%w); free some space, then try again: what was there is as it was", ErrFull, full)
		}
	}
	return err
}

// unwritable reports whether err says that the folder cannot be written now.
// Reading it goes on.
func unwritable(err error) bool { return errors.Is(err, ErrReadOnly) || errors.Is(err, ErrFull) }
