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
		real, err := realSystem(ws)
		if err != nil {
			return err
		}
		opts.system = killAt(real, at)
	}
	r, err := Open(ctx, opts)
	if err != nil {
		return err
	}
	defer r.Close()
	if id, ok := strings.CutPrefix(what, "fleet "); ok {
		return work(ctx, r, id)
	}
	return perform(ctx, r, what)
}

// perform does what a crash is to interrupt.
func perform(ctx context.Context, r *Registry, what string) (err error) {
	switch kind, arg, _ := strings.Cut(what, " "); kind {
	case "register":
		_, err = r.Register(ctx, definition("x"), arg, Provenance{}, nil)
	case "wait": // for a person
		_, err = r.Register(Asking(ctx), netDefinition("a.com"), arg, Provenance{}, nil)
	case "approve":
		_, err = r.Approve(ctx, "x")
	case "accept":
		_, err = r.Accept(ctx, "x", Acceptance{}, nil)
	case "rollback":
		_, err = r.Rollback(ctx, "x", "", Provenance{}, nil)
	case "archive":
		err = r.Archive(ctx, "x")
	case "delete":
		err = r.Delete(ctx, "x", Provenance{})
	case "restore":
		_, err = r.Restore(ctx, "x", Provenance{}, nil)
	case "settle":
		_, err = r.Settle(ctx, nil, Theirs)
	case "resolve":
		_, err = r.Resolve(ctx, "x", nil)
	default:
		err = fmt.Errorf("nobody knows how to %s", what)
	}
	return err
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

// crash is something that is interrupted.
type crash struct {
	name    string
	prepare func(t *testing.T, opts Options)
	do      string
	old     string // what runs before; "" for nothing
	new     string
	texts   []string // that must not be lost
}

func crashes() []crash {
	old := func(t *testing.T, opts Options) { register(t, openWith(t, opts), definition("x"), "old") }
	return []crash{
		{"new", func(*testing.T, Options) {}, "register new", "", "new", nil},
		{"update", old, "register new", "old", "new", nil},
		{"drift", func(t *testing.T, opts Options) {
			old(t, opts)
			writeTool(t, opts, "x.ts", "a person's work")
		}, "register new", "old", "new", []string{"a person's work"}},
		{"accept", func(t *testing.T, opts Options) {
			old(t, opts)
			writeTool(t, opts, "x.ts", "a person's work")
		}, "accept", "old", "a person's work", []string{"a person's work"}},
		{"wait for a person", old, "wait new", "old", "new", nil},
		{"approve", func(t *testing.T, opts Options) {
			old(t, opts)
			opts.Policy.Network = NetworkAsk
			register(t, openWith(t, opts), netDefinition("a.com"), "new")
		}, "approve", "old", "new", nil},
		{"rollback", func(t *testing.T, opts Options) {
			r := openWith(t, opts)
			register(t, r, definition("x"), "new")
			register(t, r, definition("x"), "old")
		}, "rollback", "old", "new", nil},
		{"archive", old, "archive", "old", "", nil},
		{"delete", func(t *testing.T, opts Options) {
			old(t, opts)
			writeTool(t, opts, "x.ts", "a person's work")
		}, "delete", "old", "", []string{"a person's work", "old"}},
		{"restore what was deleted", func(t *testing.T, opts Options) {
			old(t, opts)
			deleteX(t, opts)
		}, "restore", "", "old", []string{"old"}},
		{"delete a seed capability", func(t *testing.T, opts Options) {
			writeTool(t, opts, "index.json", seedIndex("x"))
			writeTool(t, opts, "x.ts", "old")
		}, "delete", "old", "", []string{"old"}},
		{"restore a seed capability", func(t *testing.T, opts Options) {
			writeTool(t, opts, "index.json", seedIndex("x"))
			writeTool(t, opts, "x.ts", "old")
			deleteX(t, opts)
		}, "restore", "", "old", []string{"old"}},
		{"restore the file", func(t *testing.T, opts Options) {
			old(t, opts)
			writeTool(t, opts, "x.ts", "a person's work")
		}, "restore", "old", "old", []string{"a person's work"}},
		{"first run of a seed capability", func(t *testing.T, opts Options) {
			writeTool(t, opts, "index.json", seedIndex("x"))
			writeTool(t, opts, "x.ts", "old")
		}, "resolve", "old", "old", nil},
		{"unreadable index", func(t *testing.T, opts Options) {
			old(t, opts)
			writeTool(t, opts, "index.json", readTool(t, opts, "index.json")[:100])
		}, "register new", "old", "new", nil},
	}
}

func deleteX(t *testing.T, opts Options) {
	t.Helper()
	if err := openWith(t, opts).Delete(t.Context(), "x", Provenance{}); err != nil {
		t.Fatal(err)
	}
}

// quickDir is a folder in memory, where there is such a disk: to kill a process
// takes nothing from the page cache, so that syncing is for nothing.
func quickDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tendril-test-") //nolint:usetesting // in memory
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func quickOptions(t testing.TB) Options {
	t.Helper()
	return optionsIn(t, quickDir(t))
}

func databaseOf(opts Options) string {
	return filepath.Join(filepath.Dir(opts.Workspace), "home", "tendril.db")
}

// A process that is killed before, in the middle of or after any system call
// leaves the old or the new state, and the registry works on. Here that is each
// call of the longest one, and some of the others, which a soak kills at all.
func TestCrash_KilledAtEveryCall(t *testing.T) {
	for i, c := range crashes() {
		first, step := i, 8
		if c.name == "drift" {
			first, step = 0, 1
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			killAtCalls(t, c, first, step)
		})
	}
}

func killAtCalls(t *testing.T, c crash, first, step int) {
	t.Helper()
	for at := first; ; at += step {
		opts := quickOptions(t)
		c.prepare(t, opts)
		err := inChild(t, c.do, opts.Workspace, databaseOf(opts), "KILL_AT="+strconv.Itoa(at))
		checkAfterCrash(t, opts, &c, fmt.Sprintf("%s, killed at %d", c.name, at), err == nil)
		if err == nil && at < 10 {
			t.Errorf("only %d points", at)
		}
		if err == nil || t.Failed() {
			return
		}
	}
}

// checkAfterCrash opens the registry again. done says that what was to happen
// was reported as a success.
func checkAfterCrash(t *testing.T, opts Options, c *crash, when string, done bool) {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join(opts.Workspace, indexPath)); err == nil && c.old != "" && !json.Valid(data) && c.name != "unreadable index" {
		t.Errorf("%s: index.json does not parse", when)
	}
	journal, errJournal := os.ReadFile(filepath.Join(opts.Workspace, journalPath))
	r := openWith(t, opts)
	defer r.Close() // there will be many
	for _, name := range []string{journalPath, scratchPath} {
		if _, err := r.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s is still there: %v", when, name, err)
		}
	}
	source := checkState(t, r, c, when, done)
	if errJournal == nil && c.name != "unreadable index" {
		checkTold(t, r, c, when, source, journal)
	}
	register(t, r, definition("x"), "later")
	if v := resolve(t, r, "x"); string(v.Source) != "later" || readTool(t, opts, "x.ts") != "later" {
		t.Errorf("%s: a later registration is not what runs", when)
	}
	for _, text := range c.texts {
		if !keptSomewhere(r, text) {
			t.Errorf("%s: %q is lost", when, text)
		}
	}
}

// checkState wants the old or the new state, and returns what runs.
func checkState(t *testing.T, r *Registry, c *crash, when string, done bool) string {
	t.Helper()
	v, err := r.Resolve(t.Context(), "x", nil)
	var unknown *UnknownError
	var archived *ArchivedError
	gone := errors.As(err, &unknown) || errors.As(err, &archived)
	if gone && (c.old == "" && !done || c.new == "") {
		if unknown != nil && unknown.Loose || c.do == "register new" && len(r.versionedNames()) > 0 {
			t.Errorf("%s: it does not run, but something of it is there", when)
		}
		return ""
	}
	if err != nil {
		t.Errorf("%s: %v", when, err)
		return ""
	}
	source := string(v.Source)
	if source != c.old && source != c.new || source == "" || done && source != c.new {
		t.Errorf("%s: %q runs", when, source)
	}
	if current, err := readableCopy(r.root, "x"); err != nil || string(current) != source && len(c.texts) == 0 {
		t.Errorf("%s: %q runs, the readable copy is %q, %v", when, source, current, err)
	}
	return source
}

// checkTold wants to hear which registration was interrupted, and how it ended.
func checkTold(t *testing.T, r *Registry, c *crash, when, source string, data []byte) {
	t.Helper()
	var j journal
	if err := json.Unmarshal(data, &j); err != nil {
		t.Errorf("%s: the journal: %v", when, err)
	}
	outcome := "undone"
	if n := r.Notices(); len(n) == 1 && strings.HasSuffix(n[0].Message, "completed") {
		outcome = "completed"
	}
	want := Notice{Message: fmt.Sprintf("an interrupted %s of x %s was %s", j.what(), j.Version, outcome)}
	if n := r.Notices(); len(n) != 1 || n[0] != want {
		t.Errorf("%s: notices %q, want %q", when, n, want)
	}
	// What is undone may have been a person's text that was kept before.
	if outcome == "completed" && source != c.new || outcome == "undone" && source == c.new && c.old != c.new && c.do != "wait new" && c.do != "approve" {
		t.Errorf("%s: %q runs, and %s", when, source, want.Message)
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

func TestReadOnlyWorkspace(t *testing.T) {
	opts := testOptions(t)
	register(t, openWith(t, opts), definition("x"), "one")
	opts.system = tapped{systemOf(t, opts), func(c call) error { return &fs.PathError{Op: c.op, Path: c.name, Err: fs.ErrPermission} }}
	r := openWith(t, opts)
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
	// A workspace of the seed runs there too, after its admission.
	writeTool(t, opts, "index.json", seedIndex("s"))
	writeTool(t, opts, "s.ts", "seed")
	r = openWith(t, opts)
	for range 2 {
		if v := resolve(t, r, "s"); string(v.Source) != "seed" || v.Version != "1.0.0" {
			t.Errorf("of a seed workspace: %+v", v)
		}
	}
}
