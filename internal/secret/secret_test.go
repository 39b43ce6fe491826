package secret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a keychain that works, until err is set or hang is.
type memory struct {
	mu     sync.Mutex
	values map[string]string
	err    error
	hang   chan struct{} // calls wait until it is closed
	calls  int
	most   int // longest value; zero: any
}

func (m *memory) enter() error {
	if m.hang != nil {
		<-m.hang
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return m.err
}

func (m *memory) Get(name string) (string, error) {
	if err := m.enter(); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.values[name]; ok {
		return v, nil
	}
	return "", ErrNotFound
}

func (m *memory) Set(name, value string) error {
	if err := m.enter(); err != nil {
		return err
	}
	if m.most > 0 && len(value) > m.most {
		return ErrTooLong
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string]string{}
	}
	m.values[name] = value
	return nil
}

func (m *memory) Delete(name string) error {
	if err := m.enter(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.values[name]; !ok {
		return ErrNotFound
	}
	delete(m.values, name)
	return nil
}

func (m *memory) has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.values[name]
	return ok
}

func open(dir string, k Keychain, env ...string) *Store {
	return Open(Options{Dir: dir, Keychain: k, Timeout: 5 * time.Second, Getenv: func(name string) string {
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}})
}

func set(t *testing.T, s *Store, name, value string, want Place) Kept {
	t.Helper()
	kept, err := s.Set(name, value)
	if err != nil || kept.Place != want {
		t.Fatalf("got %+v, %v, want %s", kept, err, want)
	}
	return kept
}

func lookup(t *testing.T, s *Store, name, value string, place Place) {
	t.Helper()
	if got, err := s.Lookup(t.Context(), name); err != nil || got.Value != value || got.Place != place {
		t.Fatalf("got %q in %s, %v, want %q in %s", got.Value, got.Place, err, value, place)
	}
}

func files(t *testing.T, dir string) string {
	t.Helper()
	var all string
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all += filepath.Base(path) + ": " + string(raw)
	}
	return all
}

func TestLookup_Order(t *testing.T) {
	dir, k := filepath.Join(t.TempDir(), "new"), &memory{}
	set(t, open(dir, nil), "A", "file", InFile)
	lookup(t, open(dir, k), "A", "file", InFile)
	set(t, open(dir, k), "A", "keychain", InKeychain)
	lookup(t, open(dir, k), "A", "keychain", InKeychain)
	lookup(t, open(dir, k, "A=environment"), "A", "environment", InEnvironment)
	lookup(t, open(dir, k, "A= "), "A", "keychain", InKeychain)

	_, err := open(dir, k).Lookup(t.Context(), "B")
	if !errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if _, err := open(dir, k).Lookup(t.Context(), "b"); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
	lookup(t, open("", nil, "A=environment"), "A", "environment", InEnvironment)
	if _, err := open("", k).Lookup(t.Context(), "A"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// A value is in one place, and the file does not stay for nothing.
func TestSet_NeverLingers(t *testing.T) {
	dir, k := t.TempDir(), &memory{}
	set(t, open(dir, nil), "A", "value-in-file", InFile)
	set(t, open(dir, k), "A", "value-in-keychain", InKeychain)
	if all := files(t, dir); strings.Contains(all, "value") || strings.Contains(all, valuesFile) {
		t.Errorf("it stays in the file: %s", all)
	}
	k.most = 5
	if kept := set(t, open(dir, k), "A", "value-too-long", InFile); !errors.Is(kept.NotKeychain, ErrTooLong) {
		t.Errorf("got %v", kept.NotKeychain)
	}
	if k.has("A") {
		t.Error("it stays in the keychain")
	}
	lookup(t, open(dir, k), "A", "value-too-long", InFile)
	if err := open(dir, k).Remove("A"); err != nil {
		t.Fatal(err)
	}
	if all := files(t, dir); all != lockFile+": " {
		t.Errorf("something stays: %s", all)
	}
}

// A keychain that goes away keeps an old value. It is not used, and it is
// deleted as soon as that is possible.
func TestSet_LeavesNoOldValueBehind(t *testing.T) {
	dir, k := t.TempDir(), &memory{}
	set(t, open(dir, k), "A", "old", InKeychain)
	k.err = errors.New("locked")
	if kept := set(t, open(dir, k), "A", "new", InFile); !kept.Leftover || !errors.Is(kept.NotKeychain, ErrUnavailable) {
		t.Errorf("got %+v", kept)
	}
	lookup(t, open(dir, k), "A", "new", InFile)
	if err := open(dir, k).Remove("A"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("it claims to have removed everything: %v", err)
	}
	if strings.Contains(files(t, dir), "new") {
		t.Error("the value stays in the file")
	}
	k.err = nil
	if _, err := open(dir, k).Lookup(t.Context(), "A"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the old value is used: %v", err)
	}
	set(t, open(dir, k), "B", "b", InKeychain)
	if k.has("A") || strings.Contains(files(t, dir), `"A"`) {
		t.Errorf("the old value stays: %s", files(t, dir))
	}
}

func TestRemove(t *testing.T) {
	dir, k := t.TempDir(), &memory{}
	if err := open(dir, k, "A=environment").Remove("A"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	set(t, open(dir, k), "A", "a", InKeychain)
	k.err = errors.New("locked")
	if err := open(dir, k).Remove("A"); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "still in the keychain") {
		t.Errorf("got %v", err)
	}
	k.err = nil
	lookup(t, open(dir, k), "A", "a", InKeychain)
	if err := open(dir, k).Remove("A"); err != nil || k.has("A") {
		t.Errorf("got %v", err)
	}
	set(t, open(dir, k), "A", "a", InKeychain)
	k.values = nil // somebody else removed it
	_, err := open(dir, k).Lookup(t.Context(), "A")
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "not there any more") {
		t.Errorf("got %v", err)
	}
	if err := open(dir, k).Remove("A"); err != nil {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	dir, k := t.TempDir(), &memory{}
	set(t, open(dir, nil), "B", "b", InFile)
	set(t, open(dir, k), "C", "c", InKeychain)
	set(t, open(dir, k), "D", "d", InKeychain)
	delete(k.values, "D")
	got, err := open(dir, k, "A=a", "C=x").List(t.Context(), "A", "B", "E")
	want := []Entry{
		{Name: "A", Places: []Place{InEnvironment}},
		{Name: "B", Places: []Place{InFile}},
		{Name: "C", Places: []Place{InEnvironment, InKeychain}},
		{Name: "D", Places: []Place{}, Problem: errGone("D").Error()},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	k.err = errors.New("locked")
	if got, err = open(dir, k).List(t.Context()); err != nil || len(got) != 3 || got[1].Problem == "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err = open("", k).List(t.Context()); err != nil || got == nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestSet_Refuses(t *testing.T) {
	for name, c := range map[string][2]string{
		"no name":        {"", "v"},
		"lower case":     {"sk-canary", "v"},
		"a value by '='": {"A=sk-canary", "v"},
		"newline":        {"A\n", "v"},
		"digit first":    {"1A", "v"},
		"long name":      {strings.Repeat("A", 65), "v"},
		"blank":          {"A", " \n"},
		"NUL":            {"A", "canary\x00"},
		"two lines":      {"A", "canary\ncanary"},
		"an escape":      {"A", "canary\x1b[0m"},
		"not UTF-8":      {"A", "canary\xff"},
		"long":           {"A", strings.Repeat("c", MaxValueBytes+1)},
	} {
		t.Run(name, func(t *testing.T) {
			dir, k := t.TempDir(), &memory{}
			_, err := open(dir, k).Set(c[0], c[1])
			if !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
			if k.calls > 0 || files(t, dir) != "" {
				t.Error("something was kept")
			}
		})
	}
	if _, err := open("", &memory{}).Set("A", "a"); !errors.Is(err, ErrFile) {
		t.Errorf("got %v", err)
	}
	set(t, open(t.TempDir(), nil), strings.Repeat("A", 64), strings.Repeat("é", MaxValueBytes/2), InFile)
}

// TestSet_ManyAtOnce: writers of different stores lose nothing.
func TestSet_ManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			s := open(dir, nil)
			for j := range 8 {
				if _, err := s.Set(fmt.Sprintf("N%d_%d", i, j), "v"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if list, err := open(dir, nil).List(t.Context()); err != nil || len(list) != 32 {
		t.Errorf("%d are left, %v", len(list), err)
	}
}

// TestFiles_Unusable: what cannot be trusted or read is an error that names the
// file, and stays as it is.
func TestFiles_Unusable(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(t *testing.T, path string)
		want  string
	}{
		"readable by others": {write("{\"version\":1}", 0o640), "chmod 600 "},
		"damaged":            {write(`{"version":1,"secrets":{"A":"canary"`, 0o600), "damaged"},
		"empty":              {write("", 0o600), "damaged"},
		"newer":              {write(`{"version":2,"more":"canary"}`, 0o600), "damaged"},
		"newer version":      {write(`{"version":2}`, 0o600), "version 2"},
		"not UTF-8":          {write("{\"version\":1,\"secrets\":{\"A\":\"canary\xff\"}}", 0o600), "UTF-8"},
		"two documents":      {write(`{"version":1}{"version":1}`, 0o600), "follows"},
		"a number":           {write(`{"version":1,"secrets":{"A":1234567}}`, 0o600), "damaged"},
		"a bad name":         {write(`{"version":1,"secrets":{"canary":"a"}}`, 0o600), "no name"},
		"a blank value":      {write(`{"version":1,"secrets":{"A":""}}`, 0o600), "blank"},
		"long":               {write(strings.Repeat(" ", maxFileBytes+1), 0o600), "16 MiB"},
		"a folder":           {func(t *testing.T, path string) { check(t, os.Mkdir(path, 0o700)) }, "no regular file"},
		"a link": {func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "target")
			check(t, os.WriteFile(target, []byte(`{"version":1}`), 0o600))
			check(t, os.Symlink(target, path))
		}, "symbolic link"},
	} {
		for _, file := range []string{valuesFile, indexFile} {
			t.Run(name+" "+file, func(t *testing.T) {
				if runtime.GOOS == "windows" && (name == "readable by others" || name == "a link") {
					t.Skip("there are no modes, and links need a right")
				}
				dir, k := t.TempDir(), &memory{}
				path := filepath.Join(dir, file)
				c.plant(t, path)
				before, _ := os.ReadFile(path)
				_, setErr := open(dir, k).Set("B", "b")
				_, listErr := open(dir, k).List(t.Context())
				_, lookErr := open(dir, k).Lookup(t.Context(), "A")
				for _, err := range []error{setErr, listErr, lookErr, open(dir, k).Remove("A")} {
					if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) ||
						strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "1234567") {
						t.Errorf("got %v", err)
					}
				}
				if !errors.Is(lookErr, ErrNotFound) || k.calls > 0 {
					t.Errorf("got %v, %d calls", lookErr, k.calls)
				}
				if after, _ := os.ReadFile(path); string(after) != string(before) {
					t.Errorf("it was changed to %q", after)
				}
				lookup(t, open(dir, k, "A=a"), "A", "a", InEnvironment)
			})
		}
	}
}

func write(content string, mode fs.FileMode) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		check(t, os.WriteFile(path, []byte(content), 0o600))
		check(t, os.Chmod(path, mode))
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFiles_Modes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	dir := filepath.Join(t.TempDir(), "a", "b c")
	set(t, open(dir, nil), "A", "a", InFile)
	set(t, open(dir, &memory{}), "B", "b", InKeychain)
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, valuesFile): 0o600, filepath.Join(dir, indexFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	check(t, os.Chmod(dir, 0o777))
	if _, err := open(dir, nil).Set("A", "b"); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "chmod 700 '"+dir+"'") {
		t.Errorf("got %v", err)
	}
}

// What a crash left beside the file, or somebody planted there, is not followed.
func TestFiles_PlantedTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	check(t, os.WriteFile(victim, []byte("kept"), 0o600))
	if err := os.Symlink(victim, filepath.Join(dir, valuesFile+".tmp")); err != nil {
		t.Skip(err)
	}
	set(t, open(dir, nil), "A", "a", InFile)
	if raw, err := os.ReadFile(victim); err != nil || string(raw) != "kept" {
		t.Errorf("got %q, %v", raw, err)
	}
}

func TestFound_PrintsNoValue(t *testing.T) {
	f := Found{"canary", InFile}
	if text := fmt.Sprintf("%v %+v %#v %s %v", f, f, f, f, &f); strings.Contains(text, "canary") {
		t.Error(text)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"version":1}`, `{"version":1,"secrets":{"A":"a\nb"}}`, `{"version":1,"keychain":["B","A","A"],"leftover":["C"]}`, `{"version":1,"secrets":{"A":1}}`, `[]`, "{\"version\":1}\x00", `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := decode(data)
		if err != nil {
			if len(err.Error()) > 300 {
				t.Fatalf("a long error: %v", err)
			}
			return
		}
		again, err := encode(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decode(again)
		if err != nil || !reflect.DeepEqual(normal(d), normal(back)) {
			t.Fatalf("%q became %+v, %v", data, back, err)
		}
	})
}

// normal is d without the difference between nothing and an empty list.
func normal(d document) string {
	return fmt.Sprint(d.Version, d.Secrets, d.Keychain, d.Leftover)
}

func TestKeychain_Unavailable(t *testing.T) {
	dir, k := t.TempDir(), &memory{}
	set(t, open(dir, k), "A", "a", InKeychain)
	set(t, open(dir, k), "B", "b", InKeychain)
	k.err = errors.New("no bus")
	k.calls = 0
	s := open(dir, k)
	for _, name := range []string{"A", "B", "A"} {
		_, err := s.Lookup(t.Context(), name)
		if !errors.Is(err, ErrNotFound) || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no bus") {
			t.Errorf("got %v", err)
		}
	}
	set(t, s, "C", "c", InFile)
	if k.calls != 1 {
		t.Errorf("it was asked %d times", k.calls)
	}
	lookup(t, s, "C", "c", InFile)
}

// A keychain is not touched for what was never put there: it might ask the
// person to unlock it.
func TestKeychain_NotAskedForNothing(t *testing.T) {
	k := &memory{values: map[string]string{"A": "of another folder"}}
	if _, err := open(t.TempDir(), k).Lookup(t.Context(), "A"); !errors.Is(err, ErrNotFound) || k.calls > 0 {
		t.Errorf("got %v after %d calls", err, k.calls)
	}
}

func TestKeychain_Hangs(t *testing.T) {
	dir, works := t.TempDir(), &memory{}
	set(t, open(dir, works), "A", "a", InKeychain)
	k := &memory{hang: make(chan struct{})}
	t.Cleanup(func() { close(k.hang) }) // or the goroutines that were left behind fail the tests
	s := Open(Options{Dir: dir, Keychain: k, Timeout: 20 * time.Millisecond})
	_, err := s.Lookup(t.Context(), "A")
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "did not answer within 20ms") {
		t.Errorf("got %v", err)
	}
	if kept := set(t, s, "A", "new", InFile); !kept.Leftover {
		t.Error("the old value is forgotten")
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(Options{Dir: dir, Keychain: k}).List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A value that arrives after we gave up must not stay: another one is in the
// file by then.
func TestKeychain_ComesLate(t *testing.T) {
	k := &late{memory: memory{}, started: make(chan struct{}), goOn: make(chan struct{}), undone: make(chan struct{})}
	s := Open(Options{Dir: t.TempDir(), Keychain: k, Timeout: 50 * time.Millisecond})
	set(t, s, "A", "a", InFile)
	<-k.started
	close(k.goOn)
	<-k.undone
	if k.has("A") {
		t.Error("the value stays")
	}
}

// late is a keychain whose Set hangs until it is told to go on.
type late struct {
	memory
	started, goOn, undone chan struct{}
}

func (l *late) Set(name, value string) error {
	close(l.started)
	<-l.goOn
	return l.memory.Set(name, value)
}

func (l *late) Delete(name string) error {
	defer close(l.undone)
	return l.memory.Delete(name)
}

// liar is a keychain that keeps nothing.
type liar struct{ memory }

func (*liar) Set(string, string) error { return nil }

// crasher is one whose library fails on what another process says.
type crasher struct{ memory }

func (*crasher) Get(string) (string, error) { panic("nonsense: canary") }

func TestKeychain_Misbehaves(t *testing.T) {
	for _, k := range []Keychain{&liar{}, &crasher{}} {
		dir := t.TempDir()
		kept := set(t, open(dir, k), "A", "a", InFile)
		if !errors.Is(kept.NotKeychain, ErrUnavailable) || strings.Contains(kept.NotKeychain.Error(), "canary") {
			t.Errorf("got %v", kept.NotKeychain)
		}
		lookup(t, open(dir, k), "A", "a", InFile)
	}
}
