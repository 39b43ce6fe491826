package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a path. Linux takes paths of 4096 bytes; each folder on the way
// to a place is held open while the place is used.
const (
	maxPath  = 4096
	maxDepth = 100
)

// ErrPath means that a path names nothing that can be used: it is spelled
// wrongly, leads outside of the workspace, or to a thing of another kind.
var ErrPath = errors.New("the path cannot be used")

// PathError says why a path cannot be used. It matches [ErrPath].
type PathError struct {
	Path string // as it was given
	Why  string // goes on after the path: "leads outside of the workspace"
}

func (e *PathError) Error() string { return fmt.Sprintf("%s %s", shown(e.Path), e.Why) }

func (e *PathError) Unwrap() error { return ErrPath }

// shown is a path for an error: short, and safe on a terminal.
func shown(path string) string {
	const most = 200
	if len(path) > most {
		path = path[:most] + "…"
	}
	if path == "" {
		return "the workspace"
	}
	if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(path) {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// parse splits a path. There is one spelling for each place: names with /
// between them, and "" for the workspace. Nothing in it is decoded: a % is a %.
func parse(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	names := strings.Split(path, "/")
	why := ""
	switch {
	case len(path) > maxPath || len(names) > maxDepth:
		why = fmt.Sprintf("is too long: at most %d bytes and %d folders", maxPath, maxDepth)
	case !utf8.ValidString(path):
		why = "is no UTF-8"
	case strings.ContainsFunc(path, unicode.IsControl):
		why = "has control characters"
	case strings.Contains(path, `\`):
		why = "has a backslash; write / between folders"
	case path == "." || !fs.ValidPath(path):
		why = `is no path below the workspace; write names with / between them, without ".", ".." and a / at the beginning or the end`
	case runtime.GOOS == "windows":
		for _, name := range names {
			why = cmp.Or(why, notPortable(name))
		}
	}
	if why != "" {
		return nil, &PathError{Path: path, Why: why}
	}
	return names, nil
}

// devices are the names that Windows keeps for itself, with any extension. See
// "Naming Files, Paths, and Namespaces" in Microsoft's documentation.
var devices = regexp.MustCompile(`^(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9¹²³])$`)

// notPortable says what keeps a name from being one on Windows, or "". There
// such a name is refused; elsewhere an old file may have it, a new one may not.
func notPortable(name string) string {
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch {
	case strings.Contains(name, ":"):
		return "has a colon, which Windows keeps for drives and streams"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "ends in a dot or a space, which Windows leaves out"
	case devices.MatchString(base):
		return "is the name of a device on Windows"
	}
	return ""
}

// folds reports whether some file system takes name for the ASCII name want.
func folds(name, want string) bool { return strings.EqualFold(visible(name), want) }

// visible is a name without format characters, which the file system of older
// Macs leaves out.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, name)
}
