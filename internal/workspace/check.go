package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check says why the folder at an absolute path cannot be a workspace in which
// something new is kept: it cannot be written, or cannot be created where it does
// not exist yet. It leaves nothing behind.
func Check(path string) error {
	at, info, err := nearest(path)
	failure := "cannot be written"
	if at != path {
		failure = "cannot be created in " + at
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q cannot be used: %w; choose another folder", path, reason(err))
	case !info.IsDir() && at == path:
		return fmt.Errorf("%q is no folder; choose another one", path)
	case !info.IsDir():
		return fmt.Errorf("%q %s: that is no folder; choose another one", path, failure)
	}
	if _, err := os.ReadDir(at); err != nil && at == path {
		return fmt.Errorf("%q cannot be read: %w; choose another folder", path, reason(err))
	}
	probe, err := os.MkdirTemp(at, ".probe.*.tmp")
	if err != nil {
		return fmt.Errorf("%q %s: %w; choose another folder", path, failure, reason(err))
	}
	if err := os.Remove(probe); err != nil {
		return fmt.Errorf("in %q nothing can be removed: %w; choose another folder", at, reason(err))
	}
	return nil
}

// nearest is path, or the closest folder above it that exists.
func nearest(path string) (at string, info fs.FileInfo, err error) {
	for at = path; ; at = filepath.Dir(at) {
		if info, err = os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return at, info, err
		}
	}
}
