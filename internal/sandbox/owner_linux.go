package sandbox

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

// ownerOf is whom a run in a workspace runs as: the owner of the workspace, where
// root works in the folder of another user, as in many containers. A process in
// the operating system layer has no capability to go past their permissions. nil
// is us.
func ownerOf(workspace string) *jail.User {
	info, err := os.Stat(workspace)
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || !isMapped("/proc/self/uid_map", stat.Uid) || !isMapped("/proc/self/gid_map", stat.Gid) {
		return nil
	}
	return &jail.User{UID: int(stat.Uid), GID: int(stat.Gid)}
}

// isMapped reports whether an id means somebody in our own user namespace.
func isMapped(file string, id uint32) bool {
	raw, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(raw)) {
		var first, outside, size uint64
		if n, _ := fmt.Sscan(line, &first, &outside, &size); n == 3 && uint64(id) >= first && uint64(id) < first+size {
			return true
		}
	}
	return false
}
