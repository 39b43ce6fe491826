package capability

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

func TestDrift(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	register(t, r, definition("x"), "one")
	writeTool(t, opts, "x.ts", "edited")
	r = openWith(t, opts)
	v := resolve(t, r, "x")
	if string(v.Source) != "one" {
		t.Fatalf("drifted text runs: %q", v.Source)
	}
	wantNote(t, v.Notes, "tendril capability accept x")
	a, err := r.Accept(t.Context(), "x", Acceptance{}, nil)
	if err != nil || a.Version != "1.1.0" {
		t.Fatalf("accept: %+v, %v", a, err)
	}
	if v = resolve(t, r, "x"); string(v.Source) != "edited" || len(v.Notes) > 0 {
		t.Errorf("after accept: %q, notes %q", v.Source, v.Notes)
	}
	if info, err := r.Show(t.Context(), "x"); err != nil || info.CreatedBy != ByHuman || len(info.Versions) != 2 {
		t.Errorf("show: %+v, %v", info, err)
	}
	if _, err := r.Accept(t.Context(), "x", Acceptance{}, nil); !errors.Is(err, ErrNothingToDo) {
		t.Errorf("accept of nothing: %v", err)
	}
	writeTool(t, opts, "x.ts", "a person's work")
	if a := register(t, r, definition("x"), "three"); a.Version != "1.3.0" {
		t.Errorf("version %s, want 1.3.0 after the person's 1.2.0", a.Version)
	}
	if kept := readTool(t, opts, ".versions/x/"+versionFile(t, opts, "x", "1.2.0")); kept != "a person's work" {
		t.Errorf("lost: %q", kept)
	}
}

func TestLostDatabase_MeansGatingAgain(t *testing.T) {
	opts := testOptions(t)
	register(t, openWith(t, opts), definition("x"), "one")
	opts.DB = openDB(t, filepath.Join(t.TempDir(), "new.db"))
	var checked []string
	refuse := false
	opts.Checker = checker{check: func(source, _ string) ([]sandbox.Diagnostic, error) {
		checked = append(checked, source)
		if refuse {
			return []sandbox.Diagnostic{{Line: 1, Column: 1, Message: "no"}}, nil
		}
		return nil, nil
	}}
	r := openWith(t, opts)
	refuse = true
	var refused *RefusedError
	if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &refused) {
		t.Errorf("the gate said no: %v", err)
	}
	refuse = false
	resolve(t, r, "x")
	resolve(t, r, "x")
	if len(checked) != 2 {
		t.Errorf("gated %d times, want once for each try until it passed", len(checked))
	}
}

func TestRecord_ProvesAVersion(t *testing.T) {
	r := openWith(t, testOptions(t))
	a := register(t, r, definition("x"), "1")
	states := []string{list(t, r, "").Capabilities[0].Status}
	for _, outcome := range []string{"failed", "ok"} {
		if err := r.Record(t.Context(), Run{Name: "x", Version: a.Version, Hash: a.Hash, Outcome: outcome, Started: noon}); err != nil {
			t.Fatal(err)
		}
		states = append(states, list(t, r, "").Capabilities[0].Status)
	}
	if want := []string{StatusUnproven, StatusUnproven, StatusActive}; !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	register(t, r, definition("x"), "2")
	if s := list(t, r, "").Capabilities[0].Status; s != StatusUnproven {
		t.Errorf("a new version is %s", s)
	}
	if info, err := r.Show(t.Context(), "x"); err != nil || info.Usage.Runs != 2 || info.Usage.Succeeded != 1 || info.Evidence == nil {
		t.Errorf("show: %+v, %v", info, err)
	}
}

func TestRegister_Concurrent(t *testing.T) {
	r := openWith(t, testOptions(t))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 3 {
				name := []string{"shared", "own_" + strings.Repeat("x", i+1)}[n%2]
				if _, err := r.Register(context.Background(), definition(name), strings.Repeat("/", 10*i+n+1), Provenance{}, nil); err != nil {
					t.Error(err)
				}
				if _, err := r.Resolve(context.Background(), name, nil); err != nil {
					t.Error(err)
				}
				if _, err := r.List(context.Background(), "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	info, err := r.Show(t.Context(), "shared")
	if err != nil || len(info.Versions) != 16 || info.Version != "1.15.0" {
		t.Errorf("%d versions, active %s, %v", len(info.Versions), info.Version, err)
	}
}

func TestAcquire_EndsWithItsContext(t *testing.T) {
	opts := testOptions(t)
	r, other := openWith(t, opts), openWith(t, opts)
	unlock, err := other.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Register(ctx, definition("x"), "1", Provenance{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	unlock()
	register(t, r, definition("x"), "1")
}

// Another process may make tools while this one looks for it.
func TestCheckTools_MadeMeanwhile(t *testing.T) {
	for range 300 {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		r := Registry{root: root}
		var wg sync.WaitGroup
		wg.Go(func() { _ = root.Mkdir(toolsPath, 0o755) })
		for range 20 {
			if err := r.checkTools(); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		root.Close()
	}
}
