package capability

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// call is a system call that is about to be made.
type call struct {
	op, name string
	half     func() // of a write: makes the first half of it
}

// tapped is a system that tells of each call before it makes it. An error is
// the call's result instead.
type tapped struct {
	system
	on func(call) error
}

func (s tapped) Mkdir(name string, perm fs.FileMode) error {
	if err := s.on(call{op: "mkdir", name: name}); err != nil {
		return err
	}
	return s.system.Mkdir(name, perm)
}

func (s tapped) OpenFile(name string, flag int, perm fs.FileMode) (handle, error) {
	if err := s.on(call{op: "open", name: name}); err != nil {
		return nil, err
	}
	f, err := s.system.OpenFile(name, flag, perm)
	return tappedHandle{f, name, s.on}, err
}

func (s tapped) Rename(from, to string) error {
	if err := s.on(call{op: "rename", name: to}); err != nil {
		return err
	}
	return s.system.Rename(from, to)
}

func (s tapped) Remove(name string) error {
	if err := s.on(call{op: "unlink", name: name}); err != nil {
		return err
	}
	return s.system.Remove(name)
}

type tappedHandle struct {
	handle
	name string
	on   func(call) error
}

func (h tappedHandle) Write(data []byte) (int, error) {
	half := func() { _, _ = h.handle.Write(data[:len(data)/2]) }
	if err := h.on(call{"write", h.name, half}); err != nil {
		return 0, err
	}
	return h.handle.Write(data)
}

func (h tappedHandle) Sync() error {
	if err := h.on(call{op: "fsync", name: h.name}); err != nil {
		return err
	}
	return h.handle.Sync()
}

func (h tappedHandle) Close() error {
	if err := h.on(call{op: "close", name: h.name}); err != nil {
		_ = h.handle.Close()
		return err
	}
	return h.handle.Close()
}

// realSystem is the real calls below the workspace of opts.
func realSystem(workspace string) (rootSystem, error) {
	root, err := os.OpenRoot(workspace)
	return rootSystem{root}, err
}

func systemOf(t testing.TB, opts Options) system {
	t.Helper()
	s, err := realSystem(opts.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// killAt kills this process before its call number at, counted from 0; the
// middle of a write is one more. Another process may look at what is left.
func killAt(s system, at int) system {
	point := func() {
		if at--; at < 0 {
			if p, err := os.FindProcess(os.Getpid()); err == nil {
				_ = p.Kill()
			}
			select {} // until it arrives
		}
	}
	return tapped{s, func(c call) error {
		point()
		if c.op == "write" {
			if at == 0 {
				c.half()
			}
			point()
		}
		return nil
	}}
}

// An error of any system call costs the registration, and nothing else: before
// the commit point the old state stays. An fsync that fails is never ignored.
func TestRegister_AnyCallFails(t *testing.T) {
	for _, code := range []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EACCES} {
		for at := 0; ; at++ {
			opts := quickOptions(t)
			register(t, openWith(t, opts), definition("x"), "old")
			failed, committed := false, false
			n := 0
			opts.system = tapped{systemOf(t, opts), func(c call) error {
				if n++; n-1 < at || n-1 > at && code == syscall.EIO { // full and read-only places stay so
					return nil
				}
				if n-1 > at && (c.op == "unlink" || c.op == "close" || c.op == "fsync") && code == syscall.ENOSPC {
					return nil // what needs no room
				}
				committed = committed || !failed && strings.Contains(readTool(t, opts, "index.json"), "1.1.0")
				failed = true
				if c.op == "write" {
					c.half()
				}
				return &fs.PathError{Op: c.op, Path: c.name, Err: code}
			}}
			r := openWith(t, opts)
			_, err := r.Register(t.Context(), definition("x"), "new", Provenance{}, nil)
			when := "call " + strconv.Itoa(at) + " fails with " + code.Error()
			if err == nil && failed && len(r.Notices()) == 0 {
				t.Errorf("%s: nobody is told", when)
			}
			if err == nil && failed && !committed {
				t.Errorf("%s before the commit point, and the registration succeeds", when)
			}
			if err != nil {
				wantKind(t, when, err, code)
			}
			opts.system = nil
			fresh := openWith(t, opts)
			v := resolve(t, fresh, "x")
			if err == nil && string(v.Source) != "new" || readTool(t, opts, "x.ts") != string(v.Source) {
				t.Errorf("%s: %q runs, the readable copy is %q, the error was %v", when, v.Source, readTool(t, opts, "x.ts"), err)
			}
			register(t, fresh, definition("x"), "later")
			if !failed {
				break
			}
			if t.Failed() {
				return
			}
		}
	}
}

func wantKind(t *testing.T, when string, err error, code syscall.Errno) {
	t.Helper()
	for kind, of := range map[error]syscall.Errno{ErrFull: syscall.ENOSPC, ErrReadOnly: syscall.EACCES} {
		if errors.Is(err, kind) != (code == of) {
			t.Errorf("%s: %v", when, err)
		}
	}
}
