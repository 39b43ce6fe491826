//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Quiet is a terminal that shows nothing of what is typed while a program works:
// it waits until it is asked for. Ctrl-C and the like send their signals. Nil is
// one that was left as it is. It is not safe for concurrent use.
type Quiet struct {
	fd             int
	before, during unix.Termios
	raw            []byte
}

// Keep returns what makes the terminal f again as it is now, for an exit that
// takes nothing back.
func Keep(f *os.File) (restore func()) {
	q := &Quiet{fd: int(f.Fd())}
	before, err := unix.IoctlGetTermios(q.fd, getTermios)
	if err != nil {
		return func() {}
	}
	q.before = *before
	return q.Restore
}

// Hush makes the terminal f quiet until [Quiet.Restore]. It returns nil when
// that cannot be: f is none, or belongs to another program just now.
func Hush(f *os.File) *Quiet {
	q := &Quiet{fd: int(f.Fd())}
	before, err := unix.IoctlGetTermios(q.fd, getTermios)
	if err != nil || !q.ours() {
		return nil
	}
	q.before, q.during = *before, *before
	q.during.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.IEXTEN
	q.during.Lflag |= unix.NOFLSH                          // Ctrl-C drops nothing of it
	q.during.Cc[unix.VMIN], q.during.Cc[unix.VTIME] = 0, 0 // reading takes what is there, and does not wait
	if unix.IoctlSetTermios(q.fd, setTermios, &q.during) != nil {
		return nil
	}
	return q
}

// ours reports whether this program is in the foreground: a change would stop
// one that is not.
func (q *Quiet) ours() bool {
	group, err := unix.IoctlGetInt(q.fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// Restore makes the terminal as it was. What was typed and not taken waits for
// the next program.
func (q *Quiet) Restore() {
	if q != nil && q.ours() {
		_ = unix.IoctlSetTermios(q.fd, setTermios, &q.before) // nothing is left to try
	}
}

// Hold takes what was typed until now off the terminal, and keeps it.
func (q *Quiet) Hold() {
	if q == nil || !q.ours() || unix.IoctlSetTermios(q.fd, setTermios, &q.during) != nil { // a shell may have changed it meanwhile
		return
	}
	buffer := make([]byte, 4096)
	for len(q.raw) < maxTyped {
		n, err := unix.Read(q.fd, buffer)
		if n <= 0 || err != nil {
			return
		}
		q.raw = append(q.raw, buffer[:n]...)
	}
}

// Take returns what was typed since the last call, as [Typed] reads it.
func (q *Quiet) Take() string {
	if q == nil {
		return ""
	}
	q.Hold()
	text := Typed(q.raw)
	q.raw = nil
	return text
}
