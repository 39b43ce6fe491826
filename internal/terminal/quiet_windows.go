package terminal

import (
	"os"

	"golang.org/x/term"
)

// Keep returns what makes the terminal f again as it is now, for an exit that
// takes nothing back.
func Keep(f *os.File) (restore func()) {
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(f.Fd()), before) } // nothing is left to try
}

// Quiet is a terminal that shows nothing of what is typed. Here there is none:
// all stays as it is.
type Quiet struct{}

// Hush returns nil.
func Hush(*os.File) *Quiet { return nil }

// Restore does nothing.
func (*Quiet) Restore() {}

// Hold does nothing.
func (*Quiet) Hold() {}

// Take returns "".
func (*Quiet) Take() string { return "" }
