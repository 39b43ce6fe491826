package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/store"
)

// child is the other process of a test: what it does is in its environment.
func child() {
	err := childMain(os.Getenv("CAPABILITY_CHILD"), os.Getenv("WS"), os.Getenv("DB"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func childMain(what, ws, dbPath string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, dbPath)
	if err != nil {
		return err
	}
	defer db.Close()
	opts := Options{Workspace: ws, DB: db, Checker: checker{}}
	if at, err := strconv.Atoi(os.Getenv("KILL_AT")); err == nil {
		root, err := os.OpenRoot(ws)
		if err != nil {
			return err
		}
		opts.disk = &killer{disk: rootDisk{root}, left: at}
	}
	r, err := Open(ctx, opts)
	if err != nil {
		return err
	}
	defer r.Close()
	switch kind, arg, _ := strings.Cut(what, " "); kind {
	case "register":
		_, err = r.Register(ctx, definition("x"), arg, Provenance{}, nil)
	case "resolve":
		_, err = r.Resolve(ctx, "x", nil)
	case "fill":
		for i := range 50 {
			if _, err = r.Register(ctx, definition(fmt.Sprintf("c%s_%d", arg, i)), "1", Provenance{}, nil); err != nil {
				return err
			}
		}
	}
	return err
}

// killer is a disk that kills its process at one point: before, in the middle
// of or after one of its operations.
type killer struct {
	disk
	left int
}

func (k *killer) point() {
	if k.left--; k.left < 0 {
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
		select {} // until it arrives
	}
}

func (k *killer) WriteFile(name string, data []byte) error {
	k.point()
	if k.left == 0 {
		_ = k.disk.WriteFile(name, data[:len(data)/2])
	}
	k.point()
	return k.disk.WriteFile(name, data)
}

func (k *killer) Rename(from, to string) error {
	k.point()
	err := k.disk.Rename(from, to)
	k.point()
	return err
}

func (k *killer) Remove(name string) error {
	k.point()
	return k.disk.Remove(name)
}

// inChild runs this test binary as another process.
func inChild(t *testing.T, what, ws, db string, env ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "CAPABILITY_CHILD="+what, "WS="+ws, "DB="+db)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(out) > 0 {
		return fmt.Errorf("%w: %s", err, out)
	}
	return err
}

// A registration that is killed at any point leaves the old or the new state,
// and the registry works on.
func TestRegister_KilledAnywhere(t *testing.T) {
	scenarios := []struct {
		name    string
		prepare func(t *testing.T, opts Options)
		do      string
		old     string // what runs before; "" for nothing
		new     string
		copies  []string // texts that must not be lost
	}{
		{"new", func(*testing.T, Options) {}, "register new", "", "new", nil},
		{"update", func(t *testing.T, opts Options) {
			register(t, openWith(t, opts), definition("x"), "old")
		}, "register new", "old", "new", nil},
		{"drift", func(t *testing.T, opts Options) {
			register(t, openWith(t, opts), definition("x"), "old")
			writeTool(t, opts, "x.ts", "a person's work")
		}, "register new", "old", "new", []string{"a person's work"}},
		{"first run of a seed capability", func(t *testing.T, opts Options) {
			writeTool(t, opts, "index.json", seedIndex("x"))
			writeTool(t, opts, "x.ts", "old")
		}, "resolve", "old", "old", nil},
		{"unreadable index", func(t *testing.T, opts Options) {
			register(t, openWith(t, opts), definition("x"), "old")
			writeTool(t, opts, "index.json", readTool(t, opts, "index.json")[:100])
		}, "register new", "old", "new", nil},
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				opts := testOptions(t)
				s.prepare(t, opts)
				db := filepath.Join(filepath.Dir(opts.Workspace), "home", "tendril.db")
				err := inChild(t, s.do, opts.Workspace, db, "KILL_AT="+strconv.Itoa(at))
				checkAfterCrash(t, opts, fmt.Sprintf("%s, killed at %d", s.name, at), s.old, s.new, s.copies)
				if err == nil {
					if at < 6 {
						t.Errorf("only %d points", at)
					}
					return
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

func checkAfterCrash(t *testing.T, opts Options, when, before, after string, texts []string) {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join(opts.Workspace, "tools/index.json")); err == nil && before != "" && !json.Valid(data) && !strings.Contains(when, "unreadable") {
		t.Errorf("%s: index.json does not parse", when)
	}
	r := openWith(t, opts)
	for _, name := range []string{journalPath, scratchPath} {
		if _, err := r.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s is still there: %v", when, name, err)
		}
	}
	v, err := r.Resolve(t.Context(), "x", nil)
	var unknown *UnknownError
	switch {
	case errors.As(err, &unknown) && before == "":
		if unknown.Loose || len(r.versionedNames()) > 0 {
			t.Errorf("%s: the old state, but something of the new is there", when)
		}
	case err != nil:
		t.Errorf("%s: %v", when, err)
	default:
		source := string(v.Source)
		if source != before && source != after {
			t.Errorf("%s: %q runs", when, source)
		}
		if copied := readTool(t, opts, "x.ts"); copied != source && len(texts) == 0 {
			t.Errorf("%s: %q runs, the readable copy is %q", when, source, copied)
		}
	}
	register(t, r, definition("x"), "later")
	if v := resolve(t, r, "x"); string(v.Source) != "later" || readTool(t, opts, "x.ts") != "later" {
		t.Errorf("%s: a later registration is not what runs", when)
	}
	for _, text := range texts {
		if !keptSomewhere(r, text) {
			t.Errorf("%s: %q is lost", when, text)
		}
	}
}

func keptSomewhere(r *Registry, text string) bool {
	for _, k := range keptVersions(r.root, "x") {
		if data, err := readFile(r.root, k.base+".ts", maxKept); err == nil && string(data) == text {
			return true
		}
	}
	return false
}

func TestRegister_EightProcesses(t *testing.T) {
	opts := testOptions(t)
	db := filepath.Join(filepath.Dir(opts.Workspace), "home", "tendril.db")
	done := make(chan error, 8)
	for i := range 8 {
		go func() { done <- inChild(t, fmt.Sprintf("fill %d", i), opts.Workspace, db) }()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	r := openWith(t, opts)
	if l := list(t, r, ""); l.Total != 400 || len(r.Notices()) > 0 {
		t.Errorf("%d capabilities, want 400; notices %v", l.Total, r.Notices())
	}
	for i := range 8 {
		resolve(t, r, fmt.Sprintf("c%d_49", i))
	}
}

// failing is a disk on which one kind of operation does not work.
type failing struct {
	disk
	write, rename error
	after         int // operations that still work
}

func (f *failing) fail(err error) error {
	if f.after--; f.after < 0 {
		return err
	}
	return nil
}

func (f *failing) WriteFile(name string, data []byte) error {
	if err := f.fail(f.write); err != nil {
		return err
	}
	return f.disk.WriteFile(name, data)
}

func (f *failing) Rename(from, to string) error {
	if err := f.fail(f.rename); err != nil {
		return err
	}
	return f.disk.Rename(from, to)
}

// A disk that is full at any point costs the registration, and nothing else.
func TestRegister_DiskFullAnywhere(t *testing.T) {
	full := errors.New("no space left on device")
	for after := range 12 {
		opts := testOptions(t)
		r := openWith(t, opts)
		register(t, r, definition("x"), "old")
		r.disk = &failing{disk: r.disk, write: full, rename: full, after: after}
		_, err := r.Register(t.Context(), definition("x"), "new", Provenance{}, nil)
		fresh := openWith(t, opts)
		v := resolve(t, fresh, "x")
		if want := map[bool]string{true: "new", false: "old"}[err == nil]; string(v.Source) != want {
			t.Errorf("after %d operations: %q runs, the error was %v", after, v.Source, err)
		}
		if got := readTool(t, opts, "x.ts"); got != string(v.Source) {
			t.Errorf("after %d operations: readable copy %q", after, got)
		}
		register(t, fresh, definition("x"), "later")
	}
}

func TestReadOnlyWorkspace(t *testing.T) {
	opts := testOptions(t)
	register(t, openWith(t, opts), definition("x"), "one")
	r := openWith(t, opts)
	r.disk = &failing{disk: r.disk, write: fs.ErrPermission, rename: fs.ErrPermission}
	if _, err := r.Register(t.Context(), definition("y"), "1", Provenance{}, nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("registering: %v", err)
	}
	if err := writeError(writeError(fs.ErrPermission)); strings.Count(err.Error(), "cannot be written") != 1 {
		t.Errorf("what is said twice: %v", err)
	}
	if v := resolve(t, r, "x"); string(v.Source) != "one" {
		t.Error("reading does not work")
	}
	writeTool(t, opts, "index.json", "{")
	if l := list(t, r, ""); l.Total != 1 || len(r.Notices()) == 0 {
		t.Errorf("an unreadable index: %v, notices %v", names(l), r.Notices())
	}
	if got := readTool(t, opts, "index.json"); got != "{" {
		t.Error("the index was written")
	}
}
