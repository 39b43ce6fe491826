package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

// ResolveWorkspace returns the workspace's absolute path with all links
// resolved: that of flag (from --workspace, relative to the current folder),
// else that of the settings. It creates nothing. A path that must not be a
// workspace is refused with the reason; the error matches [ErrConfig].
func ResolveWorkspace(flag string, cfg *Config, dirs Dirs) (string, error) {
	given, source, hint := flag, "--workspace", "choose another folder"
	if given == "" {
		given, source, hint = cfg.Workspace, "workspace in the settings", "choose another folder there, or with --workspace"
	}
	path, err := resolveWorkspace(given, flag != "", dirs)
	if err != nil {
		return "", failf("%s: %q %w; %s", source, given, err, hint)
	}
	return path, nil
}

// ResolveFolder returns the absolute path, with all links resolved, of a folder
// that a session is to work in. The rules are those of a workspace; the error
// matches [ErrConfig].
func ResolveFolder(path string, dirs Dirs) (string, error) {
	resolved, err := resolveWorkspace(path, false, dirs)
	if err != nil {
		return "", failf("%q %w; choose another folder", path, err)
	}
	return resolved, nil
}

func resolveWorkspace(given string, relative bool, dirs Dirs) (string, error) {
	if err := checkSpelling(given); err != nil {
		return "", err
	}
	path := expandHome(given, dirs.User)
	switch {
	case path == given && (given == "~" || strings.HasPrefix(given, "~/")):
		return "", errors.New("begins with ~, and HOME is not set")
	case !filepath.IsAbs(path) && !relative:
		return "", errors.New("is relative; write an absolute path or one that begins with ~/")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot be made absolute: %w", err)
	}
	if path, err = resolveLinks(path); err != nil {
		return "", err
	}
	if err := checkSpelling(path); err != nil {
		return "", fmt.Errorf("leads to %q, which %w", path, err)
	}
	return path, checkPlace(path, dirs)
}

// checkSpelling refuses what no workspace's path may contain.
func checkSpelling(path string) error {
	elements := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator })
	switch {
	case strings.TrimSpace(path) == "":
		return errors.New("is empty")
	case slices.Contains(elements, ".."):
		return errors.New(`contains ".."`)
	case strings.Contains(path, ","):
		return errors.New("contains a comma, which separates the folders that the sandbox may read")
	case strings.ContainsFunc(path, invisible) || !utf8.ValidString(path):
		return errors.New("contains characters that cannot be shown")
	}
	return nil
}

// checkPlace refuses the folders that hold more than a workspace. path is
// resolved.
func checkPlace(path string, dirs Dirs) error {
	user, tendril := resolvedOrSame(dirs.User), resolvedOrSame(dirs.Tendril)
	switch {
	case isRoot(path) || isSystem(path):
		return errors.New("is a system folder")
	case user != "" && samePath(path, user):
		return errors.New("is your home folder; capabilities could read and write everything in it")
	case user != "" && within(user, path):
		return errors.New("contains your home folder")
	case tendril != "" && within(tendril, path):
		return fmt.Errorf("contains %s, where settings and admissions are kept", dirs.Tendril)
	case tendril != "" && within(path, tendril):
		return fmt.Errorf("lies in %s, where settings and admissions are kept", dirs.Tendril)
	}
	return nil
}

// resolveLinks resolves all links of a path whose end need not exist.
func resolveLinks(path string) (string, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && !isRoot(path) {
		parent, err := resolveLinks(filepath.Dir(path))
		return filepath.Join(parent, filepath.Base(path)), err
	}
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("is below a link that leads nowhere: %s", path)
	case err != nil:
		return "", fmt.Errorf("cannot be resolved: %w", err)
	}
	return resolved, nil
}

func resolvedOrSame(path string) string {
	if path == "" {
		return ""
	}
	if resolved, err := resolveLinks(path); err == nil {
		return resolved
	}
	return path
}

func isRoot(path string) bool { return filepath.Dir(path) == path }

// isSystem reports whether a folder belongs to the operating system, or is one
// in which it keeps those of others.
func isSystem(path string) bool {
	closed, shared := systemFolders()
	return slices.ContainsFunc(closed, func(dir string) bool { return within(path, dir) }) ||
		slices.ContainsFunc(shared, func(dir string) bool { return samePath(path, dir) })
}

// systemFolders are closed with everything in them, or shared: what lies in
// those may be a workspace.
func systemFolders() (closed, shared []string) {
	if runtime.GOOS == "windows" {
		drive := os.Getenv("SystemDrive") + `\`
		return []string{drive + "Windows", drive + "Program Files", drive + "Program Files (x86)", drive + "ProgramData"},
			[]string{drive + "Users"}
	}
	return []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr",
			"/System", "/Library", "/Applications", "/private/etc"},
		[]string{"/home", "/media", "/mnt", "/opt", "/private", "/private/tmp", "/private/var", "/root", "/run", "/srv",
			"/tmp", "/Users", "/var", "/var/tmp", "/Volumes"}
}

// within reports whether path is dir or lies in it.
func within(path, dir string) bool {
	path, dir = foldCase(path), foldCase(dir)
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func samePath(a, b string) bool { return foldCase(a) == foldCase(b) }

// foldCase makes paths comparable where file names have no case.
func foldCase(path string) string {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return strings.ToLower(path)
	}
	return path
}
