//go:build linux

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCgroup puts a process into a group of a real hierarchy and lets go of it.
// The controllers of this machine may belong to the older hierarchies: then only
// the group is tried, not its limits.
func TestCgroup(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mount("none", root, "cgroup2", 0, ""); err != nil {
		t.Skip("no cgroup v2 can be mounted: ", err)
	}
	defer syscall.Unmount(root, 0)
	c, err := newCgroup(root, Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Skip(err)
	}
	if err := c.add(sleeper.Process.Pid); err != nil {
		t.Error(err)
	}
	in, _ := os.ReadFile(filepath.Join(c.path, "cgroup.procs"))
	if strings.TrimSpace(string(in)) == "" {
		t.Error("the group is empty")
	}
	if limit, err := os.ReadFile(filepath.Join(c.path, "pids.max")); err == nil && strings.TrimSpace(string(limit)) != "96" {
		t.Errorf("pids.max is %s", limit)
	}
	ended := make(chan error)
	go func() { ended <- sleeper.Wait() }()
	c.close()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		sleeper.Process.Kill()
		t.Error("the process outlived its group")
	}
	if _, err := os.Stat(c.path); !os.IsNotExist(err) {
		t.Errorf("the group is still there: %v", err)
	}
}
