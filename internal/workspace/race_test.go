package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Somebody swaps what a path goes through, all the time, for links out of the
// workspace and into protected places. Whoever reads and writes meanwhile
// touches neither.
func TestSwappedMeanwhile(t *testing.T) {
	for name, target := range map[string]string{"outside": "../outside", "git": ".git", "versions": "tools/.versions", "tools": "tools", "a pipe": ""} {
		t.Run(name, func(t *testing.T) {
			w, above := plant(t)
			before := snapshot(t, above, untouchable)
			swapped, other := filepath.Join(w.Path(), "swapped"), filepath.Join(w.Path(), "other")
			err := errors.Join(os.Mkdir(swapped, 0o755), pipe(other))
			if target != "" {
				err = errors.Join(os.Remove(other), os.Symlink(filepath.FromSlash(target), other))
			}
			if err != nil {
				t.Fatal(err)
			}
			stop := keepSwapping(swapped, other)
			var users sync.WaitGroup
			for range 2 {
				users.Go(func() {
					for range 15 {
						for _, name := range []string{"canary.txt", "index.json", "config", "x.ts", "new", "folder"} {
							useRacing(t, w, "swapped/"+name)
							useRacing(t, w, "swapped/mine-"+name)
							_ = w.root.Remove("swapped/mine-" + name)
						}
					}
				})
			}
			users.Wait()
			stop()
			checkSame(t, before, snapshot(t, above, untouchable))
		})
	}
}

// keepSwapping swaps two names until it is stopped.
func keepSwapping(a, b string) (stop func()) {
	done := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				swap(a, b)
			}
		}
	})
	return func() {
		close(done)
		swapper.Wait()
	}
}

// swapInSteps is for systems that cannot do it at once.
func swapInSteps(a, b string) {
	_ = os.Rename(a, a+"-aside")
	_ = os.Rename(b, a)
	_ = os.Rename(a+"-aside", b)
}

// useRacing uses a path in every way and takes what errors there are.
func useRacing(t *testing.T, w *Workspace, path string) {
	folder, _ := w.List(path)
	file, _ := w.ReadText(path)
	_, _ = w.WriteText(path, "mine", "")
	_, _ = w.WriteText(path, "mine", file.Version)
	_, _ = w.Reveal(path)
	if strings.Contains(file.Text, "canary") || len(folder.Entries) > 0 && folder.Entries[0].Name == "canary.txt" {
		t.Errorf("%s read %+v, %+v", path, file, folder)
	}
}

// The file itself is swapped for a link.
func TestFileSwappedMeanwhile(t *testing.T) {
	for _, target := range []string{"../outside/canary.txt", ".git/config", "tools/index.json", "tools/x.ts"} {
		w, above := plant(t)
		before := snapshot(t, above, untouchable)
		file, other := filepath.Join(w.Path(), "file"), filepath.Join(w.Path(), "other")
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(filepath.FromSlash(target), other)); err != nil {
			t.Fatal(err)
		}
		stop := keepSwapping(file, other)
		for range 60 {
			useRacing(t, w, "file")
		}
		stop()
		checkSame(t, before, snapshot(t, above, untouchable))
	}
}

// The same in slow motion: the folder is swapped just before it is opened.
func TestEnter_NotWhatWasSeen(t *testing.T) {
	w, _ := plant(t)
	for _, target := range []string{".git", "tools", "../outside"} {
		p, err := w.find("docs")
		if err != nil {
			t.Fatal(err)
		}
		docs := filepath.Join(w.Path(), "docs")
		if err := errors.Join(os.Rename(docs, docs+"-aside"), os.Symlink(filepath.FromSlash(target), docs)); err != nil {
			t.Fatal(err)
		}
		if err := p.enterFolder(); err == nil {
			t.Errorf("a link to %s was opened instead of the folder", target)
		}
		p.close()
		if err := errors.Join(os.Remove(docs), os.Rename(docs+"-aside", docs)); err != nil {
			t.Fatal(err)
		}
	}
}

// What happens to the name of a folder that is open does not lead a save elsewhere.
func TestSave_FolderSwappedAfterItWasFound(t *testing.T) {
	for _, target := range []string{".git", "tools", "../outside"} {
		w, above := plant(t)
		before := snapshot(t, above, untouchable)
		for _, name := range []string{"index.json", "config", "canary.txt"} {
			docs := filepath.Join(w.Path(), "docs")
			p, err := w.find("docs/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Rename(docs, docs+"-aside"), os.Symlink(filepath.FromSlash(target), docs)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.save(p, []byte("mine"), "", nil); err != nil {
				t.Error(err)
			}
			p.close()
			if data, err := os.ReadFile(filepath.Join(docs+"-aside", name)); string(data) != "mine" {
				t.Errorf("%q, %v", data, err)
			}
			if err := errors.Join(os.Remove(docs), os.Rename(docs+"-aside", docs)); err != nil {
				t.Fatal(err)
			}
		}
		checkSame(t, before, snapshot(t, above, untouchable))
	}
}

// Somebody else writes between the look at the version and the replacement.
func TestReplace_ChangedMeanwhile(t *testing.T) {
	w, _ := plant(t)
	old := version([]byte("a"))
	for name, expected := range map[string]string{"a.txt": old, "made-meanwhile.txt": ""} {
		p, err := w.find(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.Path(), name), []byte("theirs"), 0o600); err != nil {
			t.Fatal(err)
		}
		var changed *ChangedError
		if _, err := w.save(p, []byte("mine"), expected, p.info); !errors.As(err, &changed) || changed.Version != version([]byte("theirs")) {
			t.Errorf("%s: %v", name, err)
		}
		p.close()
		if data, _ := os.ReadFile(filepath.Join(w.Path(), name)); string(data) != "theirs" {
			t.Errorf("%q", data)
		}
	}
	for _, name := range names(t, w.Path()) {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("left behind %q", name)
		}
	}
}
