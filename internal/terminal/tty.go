package terminal

import (
	"os"

	"golang.org/x/term"
)

const defaultWidth = 80

// IsTTY reports whether f is a terminal.
func IsTTY(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Width returns the columns of the terminal f, or 80 when f is none.
func Width(f *os.File) int {
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return defaultWidth
}

// ColorEnabled reports whether output may be coloured: only on a terminal that
// is not dumb, and not when NO_COLOR is set.
func ColorEnabled(getenv func(string) string, tty bool) bool {
	return tty && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
