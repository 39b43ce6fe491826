package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// expressible says whether a path can stand in one of Deno's permission flags.
func expressible(path string) error {
	switch {
	case !filepath.IsAbs(path):
		return fmt.Errorf("the path %q is not absolute", path)
	case strings.Contains(path, ","):
		return fmt.Errorf("the path %q has a comma in it, which separates paths in deno's permission flags; rename the folder", path)
	case strings.Contains(path, "\x00"), !utf8.ValidString(path):
		return fmt.Errorf("the path %q has characters that deno cannot be given; rename the folder", path)
	}
	return nil
}

// realPath resolves the links of an absolute path. Its end need not exist.
func realPath(path string) (string, error) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s is a link that leads nowhere", path)
	}
	parent := filepath.Dir(path)
	if parent == path {
		return "", err
	}
	if parent, err = realPath(parent); err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// within says whether path is root or lies below it. Both are clean.
func within(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

func withinAny(path string, roots []string) bool {
	for _, root := range roots {
		if within(path, root) {
			return true
		}
	}
	return false
}

// Protected returns the places in a workspace that a capability can neither
// read nor write, and those that it cannot write: version control, files with
// credentials, and what configures Deno and npm; for writing the registry too, and
// what other programs obey.
// Deno's flags take exact paths only, so these are names at the top of the
// workspace, whether they exist or not, and each ".env…" that is there now and
// can be expressed: a name with a comma would deny other files.
func Protected(workspace string) (read, write []string) {
	names := append([]string{".git", ".env", ".env.local", ".npmrc"}, configurations...)
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		seen[name] = true
	}
	entries, _ := os.ReadDir(workspace) // what cannot be listed holds no more names
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(strings.ToLower(name), ".env") && !seen[name] && expressible(filepath.Join(workspace, name)) == nil {
			names = append(names, name)
		}
	}
	for _, name := range names {
		read = append(read, filepath.Join(workspace, name))
	}
	write = append(write, read...)
	for _, name := range append([]string{"tools"}, obeyed...) {
		write = append(write, filepath.Join(workspace, name))
	}
	return read, write
}

// obeyed is what programs of the person do what it says: git, direnv, editors
// and other agents.
var obeyed = []string{".gitattributes", ".gitmodules", ".envrc", ".mcp.json", ".claude", ".cursor", ".husky", ".idea", ".vscode"}

// configurations are the files that configure Deno and npm.
var configurations = []string{
	"deno.json", "deno.jsonc", "deno.lock", "jsr.json", "jsr.jsonc",
	"package.json", "package-lock.json", "npm-shrinkwrap.json",
}

// Owner is the user whom a workspace belongs to and as whom runs there happen, if
// that is somebody else than us: where root works in the folder of another user.
func Owner(workspace string) (uid, gid int, other bool) {
	user := ownerOf(workspace)
	if user == nil {
		return 0, 0, false
	}
	return user.UID, user.GID, true
}

// ProtectedPath reports whether a relative path leads through an entry that is
// protected by its name.
func ProtectedPath(path string) bool {
	dir := ""
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if protectedName(name, "/"+dir) {
			return true
		}
		dir += name + "/"
	}
	return false
}

// protectedName reports whether an entry of a folder is protected by its name. A
// package of npm is made of such files: what is below node_modules is left alone.
func protectedName(name, dir string) bool {
	lower := strings.ToLower(name)
	if lower == ".git" || lower == ".npmrc" || strings.HasPrefix(lower, ".env") {
		return true
	}
	return slices.Contains(configurations, lower) && !strings.Contains(filepath.ToSlash(dir)+"/", "/node_modules/")
}
