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

// disk is the only way in which the registry changes its folder. Names are
// relative to the workspace; what they would lead to outside of it is refused.
// Each operation is durable when it returns.
type disk interface {
	// WriteFile makes a new file and the folders above it. What was there under
	// this name is removed first, so that no link is followed.
	WriteFile(name string, data []byte) error
	// Rename puts a file in the place of another, at once.
	Rename(from, to string) error
	// Remove removes a file; one that is not there is no error.
	Remove(name string) error
}

// rootDisk is the disk below a folder that it cannot leave.
type rootDisk struct{ root *os.Root }

func (d rootDisk) WriteFile(name string, data []byte) error {
	if err := d.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func (d rootDisk) Rename(from, to string) error {
	if err := d.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	if err := d.root.Rename(from, to); err != nil {
		return err
	}
	return d.syncFolder(path.Dir(to))
}

func (d rootDisk) Remove(name string) error {
	err := d.root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.syncFolder(path.Dir(name))
}

// makeFolder makes a folder and those above it, durably.
func (d rootDisk) makeFolder(name string) error {
	if _, err := d.root.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	if err := d.root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.syncFolder(path.Dir(name))
}

// syncFolder makes a changed folder durable, where the system has such a thing.
func (d rootDisk) syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// replace puts data in the place of a file; readers see the old or the new
// bytes. Only the holder of the lock may: it goes through one scratch file.
func replace(d disk, name string, data []byte) error {
	if err := d.WriteFile(scratchPath, data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := d.Rename(scratchPath, name); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
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
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// writeError marks the errors that mean that the folder cannot be written, once.
func writeError(err error) error {
	if !errors.Is(err, ErrReadOnly) && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) {
		return fmt.Errorf("%w: %w; make it writable, or use another workspace", ErrReadOnly, err)
	}
	return err
}
