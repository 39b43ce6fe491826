package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// maxFileBytes bounds a file.
const maxFileBytes = 16 << 20

// fileError matches ErrFile.
type fileError struct{ err error }

func unusable(format string, args ...any) error { return &fileError{fmt.Errorf(format, args...)} }

func (e *fileError) Error() string        { return e.err.Error() }
func (e *fileError) Unwrap() error        { return e.err }
func (e *fileError) Is(target error) bool { return target == ErrFile }

// Path is where the secrets are that are in no keychain.
func (s *Store) Path() string { return filepath.Join(s.dir, valuesFile) }

func (s *Store) readValues() (map[string]string, error) {
	d, err := s.read(valuesFile)
	if d.Secrets == nil {
		d.Secrets = map[string]string{}
	}
	return d.Secrets, err
}

func (s *Store) readIndex() (*index, error) {
	d, err := s.read(indexFile)
	return &index{Keychain: d.Keychain, Leftover: d.Leftover}, err
}

// read reads one file of the store; without it the document is empty. The error
// matches ErrFile.
func (s *Store) read(name string) (document, error) {
	if s.dir == "" {
		return document{}, nil
	}
	path := filepath.Join(s.dir, name)
	data, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return document{}, nil
	}
	if err != nil {
		return document{}, err
	}
	d, err := decode(data)
	if err != nil {
		return document{}, unusable("%s cannot be read: %w; mend or remove it, then keep your secrets again with: tendril secret set NAME", path, err)
	}
	return d, nil
}

// readPrivate reads a regular file that nobody else may read or change.
func readPrivate(path string) ([]byte, error) {
	before, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, unusable("%s cannot be read: %w", path, err)
	}
	if err := checkPrivate(path, before); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unusable("%s cannot be read: %w", path, err)
	}
	defer f.Close()
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) && checkPrivate(path, after) != nil {
		return nil, unusable("%s changed while it was read; try again", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, unusable("%s cannot be read: %w", path, err)
	case len(data) > maxFileBytes:
		return nil, unusable("%s has more than %d MiB", path, maxFileBytes>>20)
	}
	return data, nil
}

// checkPrivate refuses links, devices and what others may read. Windows has no
// modes: there the folder's permissions count.
func checkPrivate(path string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return unusable("%s is a symbolic link, which is not followed; put the file itself there", path)
	case !info.Mode().IsRegular():
		return unusable("%s is no regular file; move it away", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return unusable("%s is not read, because others may read or change it (mode %04o); mend that with: chmod 600 %s", path, info.Mode().Perm(), quoted(path))
	}
	return nil
}

// quoted is path as a word of a shell.
func quoted(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// prepare makes the folder, and refuses one that others may change.
func (s *Store) prepare() error {
	if s.dir == "" {
		return unusable("there is no folder for secrets; set HOME or TENDRIL_HOME")
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return unusable("the folder of the secrets cannot be created: %w", err)
	}
	info, err := os.Stat(s.dir)
	if err != nil {
		return unusable("the folder of the secrets cannot be used: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return unusable("no secret is kept in %s, because others may change it (mode %04o); mend that with: chmod 700 %s", s.dir, info.Mode().Perm(), quoted(s.dir))
	}
	return nil
}

// write replaces one file in one step: after a crash it is the old or the new
// one. What holds nothing is removed. The caller holds the lock.
func (s *Store) write(name string, d document, empty bool) error {
	path := filepath.Join(s.dir, name)
	if err := replace(path, d, empty); err != nil {
		return unusable("%s cannot be written: %w", path, err)
	}
	return nil
}

func replace(path string, d document, empty bool) error {
	temp := path + ".tmp"
	if err := removeIfThere(temp); err != nil { // left by a crash
		return err
	}
	if empty {
		return errors.Join(removeIfThere(path), syncFolder(filepath.Dir(path)))
	}
	data, err := encode(d)
	if err != nil {
		return err
	}
	if len(data) > maxFileBytes {
		return fmt.Errorf("it would have more than %d MiB", maxFileBytes>>20)
	}
	if err := writeSynced(temp, data); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	return syncFolder(filepath.Dir(path))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeSynced writes a new file; it follows no link.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// syncFolder makes a rename last. Windows has no such call.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
