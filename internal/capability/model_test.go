package capability

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/store"
)

// TestRegistry_AgainstAModel makes random changes to a registry and to a simple
// model of it in memory, with crashes in between, and compares them.
func TestRegistry_AgainstAModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("25"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(t, rt)
		defer m.close()
		rt.Repeat(map[string]func(*rapid.T){
			"register": m.register, "edit": m.edit, "remove the file": m.removeFile, "accept": m.accept, "rollback": m.rollback,
			"archive": m.archive, "restore": m.restore, "delete": m.delete, "pull": m.pull, "lose the database": m.loseDatabase,
			"damage the index": m.damage, "": m.check,
		})
	})
}

// capabilityModel is all that is expected of one capability.
type capabilityModel struct {
	versions []string // sources, oldest first; "" is a deletion
	active   string   // source of the active version; "" for none
	archived bool
	file     string // text of tools/<name>.ts; "" for none
	last     string // what was active before the last deletion
}

func (c *capabilityModel) clone() *capabilityModel {
	out := *c
	out.versions = slices.Clone(c.versions)
	return &out
}

func (c *capabilityModel) exists() bool { return c.active != "" }

// keepFile is what happens to a person's text before it is replaced.
func (c *capabilityModel) keepFile(coming string) {
	if c.file != "" && c.file != coming && !slices.Contains(c.versions, c.file) {
		c.versions = append(c.versions, c.file)
	}
}

func (c *capabilityModel) activate(source string) {
	c.keepFile(source)
	c.versions = append(c.versions, source)
	c.active, c.file, c.archived = source, source, false
}

type model map[string]*capabilityModel

func (m model) clone() model {
	out := model{}
	for name, c := range m {
		out[name] = c.clone()
	}
	return out
}

// machine is a registry under test and its model.
type machine struct {
	rt    *rapid.T
	dir   string
	opts  Options
	r     *Registry
	dbs   int
	texts int // written so far: each is a new one
	model model
	gated map[string]bool // sources that the gate of the present database has seen
}

func newMachine(t *testing.T, rt *rapid.T) *machine {
	dir := t.TempDir()
	m := &machine{rt: rt, dir: dir, model: model{}}
	for _, name := range []string{"a", "b", "c"} {
		m.model[name] = &capabilityModel{}
	}
	m.opts = Options{Workspace: filepath.Join(dir, "ws"), Now: time.Now}
	m.opts.Checker = checker{check: func(source, _ string) ([]sandbox.Diagnostic, error) {
		m.gated[source] = true
		return nil, nil
	}}
	if err := os.Mkdir(m.opts.Workspace, 0o755); err != nil {
		rt.Fatal(err)
	}
	m.freshDB()
	return m
}

func (m *machine) freshDB() {
	if m.opts.DB != nil {
		m.opts.DB.Close()
	}
	m.dbs++
	db, err := store.Open(context.Background(), filepath.Join(m.dir, fmt.Sprintf("db%d", m.dbs)))
	if err != nil {
		m.rt.Fatal(err)
	}
	m.opts.DB, m.gated = db, map[string]bool{}
	m.open()
}

func (m *machine) open() {
	if m.r != nil {
		m.r.Close()
	}
	r, err := Open(context.Background(), m.opts)
	if err != nil {
		m.rt.Fatal(err)
	}
	m.r = r
}

func (m *machine) close() {
	m.r.Close()
	m.opts.DB.Close()
}

func (m *machine) name(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
}

// text is a new source, or one that was there before.
func (m *machine) text(t *rapid.T, name string) string {
	if old := m.sources(name); len(old) > 0 && rapid.IntRange(0, 3).Draw(t, "old text") == 0 {
		return rapid.SampledFrom(old).Draw(t, "text")
	}
	m.texts++
	return fmt.Sprintf("// text %d", m.texts)
}

func (m *machine) sources(name string) []string {
	return slices.DeleteFunc(slices.Clone(m.model[name].versions), func(s string) bool { return s == "" })
}

// do makes one change, which a crash may interrupt: then the old or the new state
// is fine. expected makes the change in the model; nil when it should fail.
func (m *machine) do(t *rapid.T, change func(*Registry) error, expected func(model)) {
	if left := rapid.IntRange(0, 40).Draw(t, "operations before a crash"); left < 12 {
		m.crashing(t, left, change, expected)
		return
	}
	err := change(m.r)
	switch {
	case expected == nil && err == nil:
		t.Fatal("it should have failed")
	case expected == nil:
	case err != nil:
		t.Fatal(err)
	default:
		expected(m.model)
	}
}

func (m *machine) crashing(t *rapid.T, left int, change func(*Registry) error, expected func(model)) {
	dead := m.opts
	root, err := os.OpenRoot(m.opts.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	dead.disk = &dying{disk: rootDisk{root}, left: left}
	r, err := Open(context.Background(), dead)
	if err != nil {
		t.Fatal(err)
	}
	err = change(r)
	r.Close()
	m.open()
	if expected == nil {
		return
	}
	before, after := m.model, m.model.clone()
	expected(after)
	if err == nil {
		m.model = after
	} else if difference := m.compare(before); difference != "" {
		m.model = before.clone()
		for name, c := range m.model { // what a person wrote may be kept already
			if c.file != "" && c.file != c.active && len(m.kept(name)) == len(c.versions)+1 {
				c.versions = append(c.versions, c.file)
			}
		}
		if m.compare(m.model) != "" {
			m.model = after
		}
		t.Logf("not the state before, because %s", difference)
	}
}

// dying is a disk that does nothing any more after some operations.
type dying struct {
	disk
	left int
}

var errDead = errors.New("crashed")

func (d *dying) alive() error {
	if d.left--; d.left < 0 {
		return errDead
	}
	return nil
}

func (d *dying) WriteFile(name string, data []byte) error {
	return errors.Join(d.alive(), ifAlive(d.left, func() error { return d.disk.WriteFile(name, data) }))
}

func (d *dying) Rename(from, to string) error {
	return errors.Join(d.alive(), ifAlive(d.left, func() error { return d.disk.Rename(from, to) }))
}

func (d *dying) Remove(name string) error {
	return errors.Join(d.alive(), ifAlive(d.left, func() error { return d.disk.Remove(name) }))
}

func ifAlive(left int, do func() error) error {
	if left < 0 {
		return nil
	}
	return do()
}

func (m *machine) register(t *rapid.T) {
	name := m.name(t)
	text := m.text(t, name)
	c := m.model[name]
	if c.active == text && c.file == text && !c.archived {
		return // the same again makes no version
	}
	m.do(t, func(r *Registry) error {
		_, err := r.Register(context.Background(), definition(name), text, Provenance{}, nil)
		return err
	}, func(w model) { w[name].activate(text) })
}

func (m *machine) edit(t *rapid.T) {
	name := m.name(t)
	text := m.text(t, name)
	path := filepath.Join(m.opts.Workspace, "tools", name+".ts")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m.model[name].file = text
}

func (m *machine) removeFile(t *rapid.T) {
	name := m.name(t)
	if err := os.RemoveAll(filepath.Join(m.opts.Workspace, "tools", name+".ts")); err != nil {
		t.Fatal(err)
	}
	c := m.model[name]
	c.file = ""
}

func (m *machine) accept(t *rapid.T) {
	name := m.name(t)
	c := m.model[name]
	expected := func(w model) { w[name].activate(w[name].file) }
	if !c.exists() || c.file == "" || c.file == c.active {
		expected = nil
	}
	m.do(t, func(r *Registry) error {
		_, err := r.Accept(context.Background(), name, Acceptance{}, nil)
		return err
	}, expected)
}

func (m *machine) rollback(t *rapid.T) {
	name := m.name(t)
	c := m.model[name]
	at := -1
	if n := len(c.versions); n > 0 {
		at = rapid.IntRange(0, n-1).Draw(t, "version")
	}
	to := fmt.Sprintf("1.%d.0", max(at, 0))
	expected := func(w model) { w[name].activate(w[name].versions[at]) }
	if !c.exists() || at < 0 || c.versions[at] == "" || c.versions[at] == c.active && !c.archived {
		expected = nil
	}
	m.do(t, func(r *Registry) error {
		_, err := r.Rollback(context.Background(), name, to, Provenance{}, nil)
		return err
	}, expected)
}

func (m *machine) archive(t *rapid.T) {
	name := m.name(t)
	expected := func(w model) { w[name].archived = true }
	if c := m.model[name]; !c.exists() || c.archived {
		expected = nil
	}
	m.do(t, func(r *Registry) error { return r.Archive(context.Background(), name) }, expected)
}

func (m *machine) restore(t *rapid.T) {
	name := m.name(t)
	c := m.model[name]
	var expected func(model)
	switch {
	case c.archived:
		expected = func(w model) { w[name].archived = false }
	case c.exists() && c.file != c.active:
		expected = func(w model) {
			w[name].keepFile(w[name].active)
			w[name].file = w[name].active
		}
	case !c.exists() && len(c.versions) > 0 && c.versions[len(c.versions)-1] != "":
		return // a crash kept a person's text and no more: it may be restored, or the file registered
	case !c.exists() && len(c.versions) > 0:
		expected = func(w model) { w[name].activate(w[name].last) }
	}
	m.do(t, func(r *Registry) error {
		_, err := r.Restore(context.Background(), name, Provenance{}, nil)
		return err
	}, expected)
}

func (m *machine) delete(t *rapid.T) {
	name := m.name(t)
	expected := func(w model) {
		c := w[name]
		c.keepFile("")
		c.versions = append(c.versions, "")
		c.last, c.active, c.file, c.archived = c.active, "", "", false
	}
	if !m.model[name].exists() {
		expected = nil
	}
	m.do(t, func(r *Registry) error { return r.Delete(context.Background(), name, Provenance{By: ByHuman}) }, expected)
}

// pull takes what a colleague with the same files and another database has
// registered.
func (m *machine) pull(t *rapid.T) {
	name := m.name(t)
	m.texts++
	text := fmt.Sprintf("// pulled %d", m.texts)
	db, err := store.Open(context.Background(), filepath.Join(m.dir, fmt.Sprintf("colleague%d", m.texts)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	theirs := m.opts
	theirs.DB, theirs.Checker = db, checker{}
	r, err := Open(context.Background(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Register(context.Background(), definition(name), text, Provenance{}, nil); err != nil {
		t.Fatal(err)
	}
	m.model[name].activate(text)
	if m.gated[text] {
		t.Fatal("this machine's gate was asked by another one's registration")
	}
}

func (m *machine) loseDatabase(*rapid.T) { m.freshDB() }

// damage makes the index unreadable; it is rebuilt from the versions.
func (m *machine) damage(t *rapid.T) {
	path := filepath.Join(m.opts.Workspace, "tools/index.json")
	if _, err := os.Stat(path); err != nil || slices.ContainsFunc(slices.Collect(maps.Values(m.model)), func(c *capabilityModel) bool {
		// The rebuilt index names the newest version, and knows no archive.
		return c.archived || c.exists() && c.versions[len(c.versions)-1] != c.active
	}) {
		t.Skip()
	}
	text := rapid.SampledFrom([]string{"", "{", "null", "\x00\x00", "[]"}).Draw(t, "damage")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m.open()
}

func (m *machine) check(t *rapid.T) {
	if difference := m.compare(m.model); difference != "" {
		t.Fatal(difference)
	}
	found, err := m.r.Examine(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Severity == SeverityError {
			t.Fatalf("the doctor finds: %s", encode(f))
		}
	}
}

// compare tells how the registry differs from a model, "" when it does not.
func (m *machine) compare(want model) string {
	ctx := context.Background()
	for _, path := range []string{journalPath, scratchPath} {
		if _, err := os.Lstat(filepath.Join(m.opts.Workspace, path)); err == nil {
			return path + " is left"
		}
	}
	data, err := os.ReadFile(filepath.Join(m.opts.Workspace, indexPath))
	if err == nil && !json.Valid(data) {
		return "index.json does not parse"
	}
	for name, c := range want {
		v, err := m.r.Resolve(ctx, name, nil)
		var archived *ArchivedError
		var unknown *UnknownError
		switch {
		case c.archived && errors.As(err, &archived), !c.exists() && errors.As(err, &unknown):
		case err != nil:
			return fmt.Sprintf("%s: %v, want %+v", name, err, c)
		case c.archived || !c.exists() || string(v.Source) != c.active:
			return fmt.Sprintf("%s: %q runs, want %+v", name, v.Source, c)
		case !m.gated[c.active]:
			return fmt.Sprintf("%s: %q runs and has not passed the gate of this machine", name, c.active)
		}
		if kept := m.kept(name); !slices.Equal(kept, c.versions) {
			return fmt.Sprintf("%s: versions %q, want %q", name, kept, c.versions)
		}
		file, err := readableCopy(m.r.root, name)
		if err != nil || string(file) != c.file {
			return fmt.Sprintf("%s: tools/%s.ts is %q (%v), want %q", name, name, file, err, c.file)
		}
	}
	return ""
}

// kept are the sources of all versions, oldest first, "" for a deletion. Each has
// the number of its place.
func (m *machine) kept(name string) []string {
	infos, err := m.r.History(context.Background(), name)
	var unknown *UnknownError
	if errors.As(err, &unknown) {
		return nil
	}
	if err != nil {
		m.rt.Fatal(err)
	}
	slices.Reverse(infos)
	kept := []string{}
	for i, info := range infos {
		if want := fmt.Sprintf("1.%d.0", i); info.Version != want {
			m.rt.Fatalf("%s: version %s, want %s", name, info.Version, want)
		}
		if info.State == VersionDeleted {
			kept = append(kept, "")
			continue
		}
		v, err := readVersion(m.r.root, versionBase(name, versionRef{info.Version, info.Hash}))
		if err != nil {
			m.rt.Fatal(err)
		}
		kept = append(kept, string(v.Source))
	}
	return kept
}
