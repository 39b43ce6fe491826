package capability

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/store"
)

// inode is a file or folder as it is, and as it was when it was synced: the rest
// may be gone after a power cut.
type inode struct {
	entries, keptEntries map[string]*inode // of a folder
	data, kept           []byte            // of a file
}

func newFolder() *inode {
	return &inode{entries: map[string]*inode{}, keptEntries: map[string]*inode{}}
}

// power is a real system that knows what a power cut would leave. after hears
// of each call that was made.
type power struct {
	system
	top   *inode
	after func(op, name string)
}

// newPower begins with what is in a folder: it has been there for long.
func newPower(t *testing.T, s system, folder string) *power {
	t.Helper()
	p := &power{system: s, top: newFolder(), after: func(string, string) {}}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		n := newFolder()
		if !d.IsDir() {
			data, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				return err
			}
			n = &inode{data: data, kept: data}
		}
		parent := p.find(path.Dir(name))
		parent.entries[path.Base(name)], parent.keptEntries[path.Base(name)] = n, n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *power) find(name string) *inode {
	n := p.top
	for _, part := range strings.Split(name, "/") {
		if part != "." && n != nil {
			n = n.entries[part]
		}
	}
	return n
}

func (p *power) Mkdir(name string, perm fs.FileMode) error {
	err := p.system.Mkdir(name, perm)
	if err == nil {
		p.find(path.Dir(name)).entries[path.Base(name)] = newFolder()
	}
	p.after("mkdir", name)
	return err
}

func (p *power) OpenFile(name string, flag int, perm fs.FileMode) (handle, error) {
	f, err := p.system.OpenFile(name, flag, perm)
	if err == nil && flag&os.O_CREATE != 0 {
		p.find(path.Dir(name)).entries[path.Base(name)] = &inode{}
	}
	p.after("open", name)
	return &powerHandle{f, p, name, p.find(name)}, err
}

func (p *power) Rename(from, to string) error {
	err := p.system.Rename(from, to)
	if err == nil {
		p.find(path.Dir(to)).entries[path.Base(to)] = p.find(from)
		delete(p.find(path.Dir(from)).entries, path.Base(from))
	}
	p.after("rename", to)
	return err
}

func (p *power) Remove(name string) error {
	err := p.system.Remove(name)
	if err == nil {
		delete(p.find(path.Dir(name)).entries, path.Base(name))
	}
	p.after("unlink", name)
	return err
}

type powerHandle struct {
	handle
	p    *power
	name string
	node *inode
}

func (h *powerHandle) Write(data []byte) (int, error) {
	h.node.data = append(h.node.data, data...)
	n, err := h.handle.Write(data)
	h.p.after("write", h.name)
	return n, err
}

func (h *powerHandle) Sync() error { // no real one: that is what this is about
	h.node.kept, h.node.keptEntries = slices.Clone(h.node.data), maps.Clone(h.node.entries)
	h.p.after("fsync", h.name)
	return nil
}

// loss says what a power cut takes of what was not synced: in which folders
// the changes of names, and how much of the contents of files.
type loss struct {
	names    map[*inode]bool
	contents string // "all", "half" or "none"
}

// losses are all that can happen now: file systems may keep a rename and lose
// what was written before it, or the other way around.
func (p *power) losses() []loss {
	var changed []*inode
	var walk func(n *inode)
	walk = func(n *inode) {
		if n.entries == nil {
			return
		}
		if !maps.Equal(n.entries, n.keptEntries) {
			changed = append(changed, n)
		}
		for _, child := range n.entries {
			walk(child)
		}
	}
	walk(p.top)
	var all []loss
	for mask := range 1 << len(changed) {
		l := loss{names: map[*inode]bool{}}
		for i, n := range changed {
			l.names[n] = mask>>i&1 == 1
		}
		for _, l.contents = range []string{"all", "half", "none"} {
			all = append(all, l)
		}
	}
	return all
}

// restore makes a folder of what is left.
func (l loss) restore(n *inode, to string) error {
	if n.entries == nil {
		data := n.data
		if len(n.kept) < len(n.data) {
			data = map[string][]byte{"all": n.kept, "half": n.data[:len(n.data)/2], "none": n.data}[l.contents]
		}
		return os.WriteFile(to, data, 0o644)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries := n.entries
	if l.names[n] {
		entries = n.keptEntries
	}
	for name, child := range entries {
		if err := l.restore(child, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// unsynced spares the time of syncing.
type unsynced struct{ system }

func (s unsynced) OpenFile(name string, flag int, perm fs.FileMode) (handle, error) {
	f, err := s.system.OpenFile(name, flag, perm)
	return unsyncedHandle{f}, err
}

type unsyncedHandle struct{ handle }

func (unsyncedHandle) Sync() error { return nil }

// A power cut after any system call leaves the old or the new state, whatever of
// the unsynced is lost; what was reported as done stays done. That the newest
// rows of the database are lost too means gating again, and nothing else.
func TestCrash_PowerCutAtEveryCall(t *testing.T) {
	for _, c := range crashes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			opts := quickOptions(t)
			c.prepare(t, opts)
			p := newPower(t, systemOf(t, opts), opts.Workspace)
			cut := cutter(t, &c, p)
			calls := 0
			p.after = func(op, name string) {
				calls++
				cut(fmt.Sprintf("%s, power cut after call %d, %s %s", c.name, calls, op, name), false)
			}
			opts.system = p
			r := openWith(t, opts)
			if err := perform(t.Context(), r, c.do); err != nil {
				t.Error(err)
			}
			cut(c.name+", power cut at the end", true)
			if p.find(versionsPath).keptEntries[path.Base(journalPath)] != nil {
				t.Error("the journal of what is done comes back")
			}
			if calls < 6 {
				t.Errorf("only %d calls", calls)
			}
		})
	}
}

// cutter returns what cuts the power and checks what each loss leaves.
func cutter(t *testing.T, c *crash, p *power) func(when string, done bool) {
	t.Helper()
	db, top, n := openDB(t, store.Memory), quickDir(t), 0
	return func(when string, done bool) {
		t.Helper()
		for i, l := range p.losses() {
			if t.Failed() {
				return
			}
			n++
			gated := 0
			opts := Options{Workspace: filepath.Join(top, strconv.Itoa(n)), DB: db, Checker: counting(&gated)}
			if err := l.restore(p.top, opts.Workspace); err != nil {
				t.Fatal(err)
			}
			real, err := realSystem(opts.Workspace)
			if err != nil {
				t.Fatal(err)
			}
			defer real.Close()
			opts.system = unsynced{real}
			checkAfterCrash(t, opts, c, fmt.Sprintf("%s, loss %d (contents: %s)", when, i, l.contents), done)
			if _, err := db.SQL.ExecContext(t.Context(), "DELETE FROM admissions"); err != nil {
				t.Fatal(err)
			}
			if gated < 2 && c.new != "" && (done || c.old != "") { // what was there, and the later one
				t.Errorf("%s: gated %d times", when, gated)
			}
		}
	}
}

func counting(n *int) Checker {
	return checker{check: func(string, string) ([]sandbox.Diagnostic, error) {
		*n++
		return nil, nil
	}}
}

// Who is killed before an fsync has renamed what is not synced yet: the repair
// of the next process must not build on that.
func TestCrash_PowerCutDuringTheRepair(t *testing.T) {
	errKilled := errors.New("killed")
	for _, c := range crashes() {
		if !slices.Contains([]string{"new", "update", "drift", "delete"}, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for at := 0; !t.Failed(); at++ {
				opts := quickOptions(t)
				c.prepare(t, opts)
				p := newPower(t, systemOf(t, opts), opts.Workspace)
				left := at
				opts.system = tapped{p, func(c call) error {
					if c.op == "fsync" {
						left--
					}
					if left < 0 {
						return errKilled
					}
					return nil
				}}
				_ = perform(t.Context(), openWith(t, opts), c.do) // killed: nobody hears how it went
				if left >= 0 {
					return
				}
				cut := cutter(t, &c, p)
				opts.system = p
				n := 0
				p.after = func(op, name string) {
					n++
					cut(fmt.Sprintf("%s, killed at %d, power cut after call %d of the repair, %s %s", c.name, at, n, op, name), false)
				}
				r := openWith(t, opts)
				p.after = func(string, string) {}
				err := perform(t.Context(), r, c.do)
				if gone := new(UnknownError); err != nil && !(c.do == "delete" && errors.As(err, &gone)) {
					t.Error(err)
				}
				cut(fmt.Sprintf("%s, killed at %d, power cut after it was done again", c.name, at), true)
			}
		})
	}
}
