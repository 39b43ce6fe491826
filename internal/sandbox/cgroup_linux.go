package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cgroupRoot is where systems mount the unified hierarchy (cgroup v2).
const cgroupRoot = "/sys/fs/cgroup"

// cgroup is the control group of one run: the kernel itself keeps its memory and
// its processes within limits. nil stands for none.
type cgroup struct{ path string }

// ownGroup is the control group of this process, if that hands its controllers
// down to groups that we may make: then somebody has delegated it to us.
func ownGroup(root string) string {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		path, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !found {
			continue
		}
		group := filepath.Join(root, path)
		handedDown, _ := os.ReadFile(filepath.Join(group, "cgroup.subtree_control")) // without the file there is nothing
		controllers := strings.Fields(string(handedDown))
		if slices.Contains(controllers, "memory") && slices.Contains(controllers, "pids") {
			return group
		}
	}
	return ""
}

// newCgroup makes a group below parent, with the limits of a run.
func newCgroup(parent string, l Limits) (*cgroup, error) {
	path, err := os.MkdirTemp(parent, "tendril-")
	if err != nil {
		return nil, err
	}
	c := &cgroup{path}
	// Files in memory count too, and what is swapped out does not save a run.
	for file, value := range map[string]int64{
		"memory.max": int64(l.RSSMB+l.WrittenMB+l.WrittenMB/4) << 20, "memory.swap.max": 0, "pids.max": int64(l.Processes),
	} {
		err := c.write(file, strconv.FormatInt(value, 10))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			c.close()
			return nil, fmt.Errorf("set %s of the control group: %w", file, err)
		}
	}
	return c, nil
}

// add moves a process into the group.
func (c *cgroup) add(pid int) error { return c.write("cgroup.procs", strconv.Itoa(pid)) }

func (c *cgroup) write(file, text string) error {
	f, err := os.OpenFile(filepath.Join(c.path, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// killedForMemory reports whether the kernel ended a process of the group
// because of its memory.
func (c *cgroup) killedForMemory() bool {
	raw, _ := os.ReadFile(filepath.Join(c.path, "memory.events")) // without the controller there is none
	for line := range strings.Lines(string(raw)) {
		if count, found := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); found {
			return count != "0"
		}
	}
	return false
}

// close kills what is left in the group and removes it.
func (c *cgroup) close() {
	if c == nil {
		return
	}
	_ = c.write("cgroup.kill", "1") // an old kernel cannot; the namespace is gone anyway
	for range 50 {
		if err := os.Remove(c.path); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond) // the last process is still going
	}
}

// confined makes the group of a run, if one can be made. It is nil otherwise:
// the watcher keeps the same limits.
func confined(l Limits) *cgroup {
	parent := ownGroup(cgroupRoot)
	if parent == "" {
		return nil
	}
	c, err := newCgroup(parent, l)
	if err != nil {
		return nil
	}
	return c
}
