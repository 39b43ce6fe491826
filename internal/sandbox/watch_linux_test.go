package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// untold is a counter for a file system that does not tell what is free, so that
// it counts one by one, and nobody else on the disk changes what it finds.
func untold(root string) *fileCounter {
	return &fileCounter{pid: os.Getpid(), roots: []string{root}, since: time.Now().Add(-time.Second), free: []space{{files: -1}}}
}

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFileCounter_Hidden: a run cannot make its files look old, nor hide them by
// taking their names away.
func TestFileCounter_Hidden(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "before"), 1)
	time.Sleep(1100 * time.Millisecond) // what it calls new begins a second early
	c := untold(root)
	if got := c.count(Limits{}.WithDefaults()); got.files != 0 {
		t.Fatalf("%+v before anything was made", got)
	}
	old := filepath.Join(root, "old")
	write(t, old, 1<<20)
	if err := os.Chtimes(old, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(root, "unnamed"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file.Name()); err != nil {
		t.Fatal(err)
	}
	_ = unix.Fsync(int(file.Fd())) // some file systems give out blocks late
	unix.Sync()
	c.next = time.Time{}
	if got := c.count(Limits{}.WithDefaults()); got.files != 2 || got.bytes < 2<<20 {
		t.Errorf("%+v", got)
	}
}

// TestFileCounter_Unlistable: a new folder that cannot be listed stands for all
// that is missing.
func TestFileCounter_Unlistable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can list every folder")
	}
	root := t.TempDir()
	c := untold(root)
	c.free[0] = freeSpace(root)
	c.free[0].files += 1_000_000
	if err := os.Mkdir(filepath.Join(root, "hidden"), 0); err != nil {
		t.Fatal(err)
	}
	if got := c.count(Limits{}.WithDefaults()); got.files < int64(defaultFiles) {
		t.Errorf("%+v", got)
	}
}

// TestRunner_WritesToMemory: what is written to a file system in memory counts
// too, although no disk sees it.
func TestRunner_WritesToMemory(t *testing.T) {
	ws := t.TempDir()
	var stat unix.Statfs_t
	if unix.Statfs(ws, &stat) != nil || stat.Type != unix.TMPFS_MAGIC {
		t.Skip("the folder for temporary files is not in memory; TMPDIR names another")
	}
	source := []byte(`
		const open = [];
		for (let i = 0; i < 200; i++) {
			const path = __workspace + "/f" + i;
			open.push(Deno.openSync(path, { create: true, write: true }));
			open[i].writeSync(new Uint8Array(1 << 20));
			Deno.removeSync(path);
		}
		await new Promise((done) => setTimeout(done, 3000));`)
	got := mustRun(t, newRunner(t), Job{Name: "fill", Source: source, Workspace: ws, Limits: Limits{WrittenMB: 40}})
	if got.Outcome != DiskLimit {
		t.Errorf("%s: %+v\n%s", got.Outcome, got.Peaks, got.Text)
	}
}
