//go:build linux

package jail

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Main()
	goleak.VerifyTestMain(m)
}

// inJail runs a program in a jail.
func inJail(t *testing.T, spec Spec, use func(*Process)) (out string, code int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var buf bytes.Buffer
	cmd := exec.CommandContext(ctx, "")
	cmd.Stdout, cmd.Stderr = &buf, &buf
	p, err := Command(cmd, "/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	libraries, err := Libraries(spec.Path)
	if err != nil {
		t.Fatal(err)
	}
	spec.Mounts = append(append([]Mount{{Path: spec.Path, Kind: Program}}, libraries...), spec.Mounts...)
	if err := p.Enter(spec); err != nil {
		cmd.Wait()
		t.Fatalf("%v\n%s", err, buf.String())
	}
	if use != nil {
		use(p)
	}
	cmd.Wait()
	return buf.String(), cmd.ProcessState.ExitCode()
}

func shell(t *testing.T, script string, mounts ...Mount) string {
	t.Helper()
	out, code := inJail(t, Spec{Path: realpath(t, "/bin/bash"), Args: []string{"bash", "-c", script}, Dir: "/", Mounts: mounts,
		Env: []string{"PATH=/usr/bin:/bin"}, Limits: Limits{Descriptors: 1024, Threads: 96}}, nil)
	t.Logf("exit %d\n%s", code, out)
	return out
}

func realpath(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Skip(err)
	}
	return real
}

func TestJail_Look(t *testing.T) {
	ws := t.TempDir()
	os.WriteFile(filepath.Join(ws, "x"), []byte("hello"), 0o644)
	os.Mkdir(filepath.Join(ws, "tools"), 0o755)
	os.WriteFile(filepath.Join(ws, ".env"), []byte("secret"), 0o644)
	out := shell(t, fmt.Sprintf(`echo $$ $UID; echo /* /dev/* ; echo /proc/*; read a < /proc/self/status; echo $a; while read l; do echo "$l"; done < /proc/self/status | grep -i cap; while read l; do case $l in Cap*|Seccomp*|NoNew*) echo "$l";; esac; done </proc/self/status; while read l; do echo "$l"; done < /proc/self/mountinfo; cd %[1]s; echo *; echo .e*; read e < .env; echo "env: $e"; echo new > y; echo new > tools/y; echo t > /tmp/t; read b < /tmp/t; echo $b; echo $HOSTNAME; ulimit -a`, ws),
		Mount{Path: ws, Kind: Write}, Mount{Path: ws + "/tools", Kind: Read}, Mount{Path: ws + "/.env", Kind: Closed}, Mount{Path: ws + "/.git", Kind: Closed}, Mount{Path: "/tmp", Kind: Tmp, Bytes: 1 << 20, Files: 100})
	if strings.Contains(out, "secret") {
		t.Error("seen")
	}
}
