package capability

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// again runs this test once more, in a process of its own with attr, and passes
// on how it went. It returns true in that process, which has TMPDIR for itself.
func again(t *testing.T, attr *syscall.SysProcAttr) bool {
	t.Helper()
	if os.Getenv("CAPABILITY_AGAIN") != "" {
		return true
	}
	dir, err := os.MkdirTemp("", "tendril-test-") //nolint:usetesting // another user may not enter the other
	if err == nil {
		err = os.Chmod(dir, 0o777) // it may be another user
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", pattern, "-test.v")
	cmd.Env = append(os.Environ(), "CAPABILITY_AGAIN=1", "TMPDIR="+dir)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skip("this machine gives no such process:", err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	case !strings.Contains(string(out), "--- PASS"):
		t.Errorf("nothing ran:\n%s", out)
	}
	return false
}

// mounting is again in a process that may mount, for itself alone.
func mounting(t *testing.T, user int) bool {
	t.Helper()
	if os.Getuid() != 0 && user != os.Getuid() {
		t.Skip("only root may be somebody else")
	}
	return again(t, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}},
		Credential:  &syscall.Credential{NoSetGroups: true},
	})
}

func ordinaryUser() int {
	if id := os.Getuid(); id != 0 {
		return id
	}
	return nobody
}

// smallDisk mounts a disk of some hundred KiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tendril-test", dir, "tmpfs", 0, "size=512k,nr_inodes=100"); err != nil {
		t.Skip("nothing can be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill fills a disk up to some blocks, or some files, and returns what makes
// room again.
func fill(t *testing.T, dir, what string, left int) func() {
	t.Helper()
	var room syscall.Statfs_t
	if err := syscall.Statfs(dir, &room); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.Mkdir(ballast, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	switch what {
	case "files":
		for i := range int(room.Ffree) - 1 - left {
			err = errors.Join(err, os.WriteFile(filepath.Join(ballast, strconv.Itoa(i)), nil, 0o600))
		}
	default:
		size := (int64(room.Bavail) - int64(left)) * room.Bsize
		err = os.WriteFile(filepath.Join(ballast, "big"), make([]byte, size), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(ballast); err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that is full costs what is being registered, says so, and nothing else:
// at every level of filling, of blocks and of files, for workspace and database.
func TestFullDisk(t *testing.T) {
	for who, user := range map[string]int{"root": 0, "ordinary user": ordinaryUser()} {
		for _, what := range []string{"blocks", "files", "database"} {
			if who == "root" && what != "blocks" {
				continue // a disk is not less full for root
			}
			t.Run(who+"/"+what, func(t *testing.T) {
				if !mounting(t, user) {
					return
				}
				left := 0
				for !fillsUp(t, what, left) && !t.Failed() {
					left++
				}
				t.Logf("a registration needs %d", left)
				if left < 2 {
					t.Errorf("it never was full")
				}
			})
		}
	}
}

// fillsUp registers on a disk with a little room and reports whether that was
// enough.
func fillsUp(t *testing.T, what string, left int) bool {
	t.Helper()
	when := fmt.Sprintf("%d %s left", left, what)
	disk, other := smallDisk(t), t.TempDir()
	opts := optionsIn(t, other)
	if what == "database" {
		opts.DB = openDB(t, filepath.Join(disk, "tendril.db"))
	} else {
		opts.Workspace = filepath.Join(disk, "ws")
		if err := os.Mkdir(opts.Workspace, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := openWith(t, opts)
	register(t, r, definition("x"), "old")
	free := fill(t, disk, what, left)

	source := strings.Repeat("// new\n", 1000) // more than a block
	_, err := r.Register(t.Context(), definition("x"), source, Provenance{}, nil)
	if err != nil && (!strings.Contains(err.Error(), "full") || !strings.Contains(err.Error(), "try again") || strings.Contains(err.Error(), "\n")) {
		t.Errorf("%s: %v", when, err)
	}
	if err != nil && what != "database" && !errors.Is(err, ErrFull) {
		t.Errorf("%s: %v", when, err)
	}
	full := openWith(t, opts)
	if l := list(t, full, ""); l.Total != 1 {
		t.Errorf("%s: %d are listed", when, l.Total)
	}
	wantOldOrNew(t, when, string(resolve(t, full, "x").Source), source, err)
	_, errOther := full.Register(t.Context(), definition("y"), source, Provenance{}, nil)

	free()
	fresh := openWith(t, opts)
	wantOldOrNew(t, when+", then freed", string(resolve(t, fresh, "x").Source), source, err)
	if errOther == nil {
		resolve(t, fresh, "y")
	}
	if v := resolve(t, fresh, "x"); readTool(t, opts, "x.ts") != string(v.Source) || len(v.Notes) > 0 {
		t.Errorf("%s: the readable copy is not mended; notes %q", when, v.Notes)
	}
	register(t, fresh, definition("x"), "later")
	if string(resolve(t, fresh, "x").Source) != "later" || fresh.interrupted() {
		t.Errorf("%s: later registrations do not work", when)
	}
	return err == nil && len(r.Notices()) == 0
}

func wantOldOrNew(t *testing.T, when, got, source string, err error) {
	t.Helper()
	if got != source && (got != "old" || err == nil) {
		t.Errorf("%s: %.20q runs, the error was %v", when, got, err)
	}
}
