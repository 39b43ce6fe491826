package config

import (
	"os"
	"path/filepath"
	"strings"
)

// Dirs are the folders of a user.
type Dirs struct {
	User    string // the home folder; empty when there is none
	Tendril string // settings, database, Deno: TENDRIL_HOME, else ~/.tendril; empty when there is none
}

// Locate finds the folders of a user without touching them. With an error, which
// matches [ErrConfig], no place to keep anything is known; the result can still
// be used, and nothing is kept then.
func Locate(getenv func(string) string) (Dirs, error) {
	dirs := Dirs{User: userHome(getenv)}
	switch own := getenv("TENDRIL_HOME"); {
	case own != "":
		abs, err := filepath.Abs(expandHome(own, dirs.User))
		if err != nil {
			return dirs, failf("TENDRIL_HOME=%q cannot be made absolute: %w", own, err)
		}
		dirs.Tendril = abs
	case dirs.User != "":
		dirs.Tendril = filepath.Join(dirs.User, ".tendril")
	default:
		return dirs, failf("HOME is not set to an absolute path, so nothing is kept; set HOME, or TENDRIL_HOME to the folder for settings and data")
	}
	return dirs, nil
}

// Prepare creates the Tendril folder with mode 0700 and proves that it can be
// written. The error says that nothing is kept; everything else works without.
func Prepare(home string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return failf("%s cannot be created, so nothing is kept: %w; set TENDRIL_HOME to a folder that you may write", home, err)
	}
	f, err := os.CreateTemp(home, ".probe-*")
	if err != nil {
		return failf("%s cannot be written, so nothing is kept: %w; set TENDRIL_HOME to a folder that you may write", home, err)
	}
	f.Close()
	return os.Remove(f.Name())
}

func userHome(getenv func(string) string) string {
	home := getenv("HOME")
	if home == "" {
		home = getenv("USERPROFILE") // Windows
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Clean(home)
}

// expandHome replaces a leading ~. Without a home folder path stays as it is.
func expandHome(path, home string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || home == "" || rest != "" && !os.IsPathSeparator(rest[0]) {
		return path
	}
	return filepath.Join(home, rest)
}
