package capability

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// work is what a process of a fleet does, one thing after the other, until it is
// killed or has done enough: it registers, updates what others update too, and
// edits and accepts. A line tells of each success, after it.
func work(ctx context.Context, r *Registry, id string) error {
	fmt.Println("ready")
	for n := range 12 {
		name, text := fmt.Sprintf("shared_%d", rand.IntN(3)), fmt.Sprintf("// %s %d", id, n)
		if rand.IntN(2) == 0 {
			name = fmt.Sprintf("own_%s_%d", strings.SplitN(id, "-", 2)[0], rand.IntN(10))
		}
		a, err := r.Register(ctx, definition(name), text, Provenance{}, nil)
		if err != nil {
			return err
		}
		fmt.Println(a.Name, a.Version, a.Hash)
		if rand.IntN(3) > 0 {
			continue
		}
		if err := saveAs(r.SourcePath(name), text+" edited"); err != nil {
			return err
		}
		a, err = r.Accept(ctx, name, Acceptance{}, nil)
		if errors.Is(err, ErrNothingToDo) { // another one has written over it
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println(a.Name, a.Version, a.Hash)
	}
	return nil
}

// fleet is eight processes at work on one registry, of which some are killed.
type fleet struct {
	opts Options

	mu    sync.Mutex
	told  []string // successes: name, version, hash
	kills int
}

// TestFleet_Killed: eight processes do different things at once and are killed
// at any moment. What one reported as done is kept, the index parses at every
// instant, and nothing is left over.
func TestFleet_Killed(t *testing.T) { (&fleet{opts: quickOptions(t)}).run(t, 24) }

func (f *fleet) run(t *testing.T, kills int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var writers, reader sync.WaitGroup
	reader.Go(func() { f.read(ctx, t) })
	for slot := range 8 {
		writers.Go(func() {
			for life := 0; life <= kills/8 && !t.Failed(); life++ {
				f.live(t, fmt.Sprintf("%d-%d", slot, life), life < kills/8)
			}
		})
	}
	writers.Wait()
	stop()
	reader.Wait()
	f.check(t)
	t.Logf("%d successes, %d of the processes were killed before they were done", len(f.told), f.kills)
}

// live is the life of one process.
func (f *fleet) live(t *testing.T, id string, kill bool) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CAPABILITY_CHILD=fleet "+id, "WS="+f.opts.Workspace, "DB="+databaseOf(f.opts))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	var told []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() != "ready" {
			told = append(told, lines.Text())
		} else if kill {
			time.AfterFunc(rand.N(60*time.Millisecond), func() { _ = cmd.Process.Kill() })
		}
	}
	err = cmd.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, told...)
	if err != nil && kill && errs.Len() == 0 {
		f.kills++
	} else if err != nil {
		t.Errorf("process %s: %v: %s", id, err, errs.String())
	}
}

// read reads the index as fast as it can.
func (f *fleet) read(ctx context.Context, t *testing.T) {
	seen := false
	for ctx.Err() == nil {
		data, err := os.ReadFile(filepath.Join(f.opts.Workspace, indexPath))
		if errors.Is(err, fs.ErrNotExist) && !seen {
			continue
		}
		seen = true
		if err != nil {
			t.Error(err)
			return
		}
		if ix, err := decodeIndex(data, nil); err != nil || len(ix.bad) > 0 || ix.conflict != "" {
			t.Errorf("the index does not parse: %v\n%s", err, data)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (f *fleet) check(t *testing.T) {
	t.Helper()
	r := openWith(t, f.opts)
	for _, n := range r.Notices() {
		if !strings.HasPrefix(n.Message, "an interrupted registration of ") {
			t.Errorf("notice %q", n.Message)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(f.opts.Workspace, "tools/.versions/.[jn]*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	ix, err := r.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range f.told {
		var name, text, hash string
		if _, err := fmt.Sscan(line, &name, &text, &hash); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		v, err := readVersion(r.root, versionBase(name, versionRef{text, hash}))
		if err != nil || v.Hash != hash {
			t.Errorf("%s: lost: %v", line, err)
		}
		e := ix.find(name)
		if e == nil {
			t.Fatalf("%s: not in the index", line)
		}
		at, _ := parseNumber(text)
		if active, _ := parseNumber(e.version); active.compare(at) < 0 {
			t.Errorf("%s: %s is active", line, e.version)
		}
	}
	for _, name := range ix.names() {
		resolve(t, r, name)
		numbers := map[number]bool{}
		for _, k := range keptVersions(r.root, name) {
			if numbers[k.number] {
				t.Errorf("%s has two versions %s", name, k.number)
			}
			numbers[k.number] = true
		}
	}
}

// saveAs writes a file as editors do: nobody sees half of it.
func saveAs(path, text string) error {
	half := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	return errors.Join(os.WriteFile(half, []byte(text), 0o600), os.Rename(half, path))
}
