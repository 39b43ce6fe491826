package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// readOnly makes a folder read-only until the test ends, for root too.
func readOnly(t *testing.T, path string) {
	t.Helper()
	if os.Getuid() != 0 {
		if err := os.Chmod(path, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) }) // so that it can be removed
		return
	}
	if err := syscall.Mount(path, path, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("nothing can be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) })
	if err := syscall.Mount("", path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip("nothing can be mounted read-only here:", err)
	}
}

// TestCases_ReadOnlyPlaces: where the home, the workspace or the folder for
// temporary files is read-only, what is registered runs; registering works too,
// except in the workspace, where the result says why not (case D04).
func TestCases_ReadOnlyPlaces(t *testing.T) {
	for place, want := range map[string]struct{ registered, warned string }{
		"home": {`"registered":"two"`, "nothing is kept"},
		"ws":   {"the workspace cannot be written", ""},
		"tmp":  {`"registered":"two"`, ""},
	} {
		t.Run(place, func(t *testing.T) {
			p := testkit.NewProvider(t, register("one", `console.log("it ran");`), testkit.OpenAIText("done"),
				execute("one"), register("two", `console.log("two");`), testkit.OpenAIText("done"))
			s := newSandboxed(t, p)
			tmp := filepath.Join(filepath.Dir(s.home), "tmp")
			if err := os.Mkdir(tmp, 0o700); err != nil {
				t.Fatal(err)
			}
			s.env = append(s.env, "TMPDIR="+tmp)
			if code := s.wait(s.start("run", "go"), time.Minute); code != 0 {
				t.Fatalf("exit code %d\n%s", code, s.errs.String())
			}
			readOnly(t, filepath.Join(filepath.Dir(s.home), place))
			if code := s.wait(s.start("run", "go"), time.Minute); code != 0 {
				t.Fatalf("read-only: exit code %d\n%s", code, s.errs.String())
			}
			if result := lastResult(t, p.Requests()[3].Body); result != "it ran" {
				t.Errorf("running: %s", result)
			}
			if result := lastResult(t, p.Requests()[4].Body); !strings.Contains(result, want.registered) {
				t.Errorf("registering: %s", result)
			}
			if !strings.Contains(s.errs.String(), want.warned) {
				t.Errorf("stderr: %s", s.errs.String())
			}
		})
	}
}
