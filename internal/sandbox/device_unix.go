//go:build unix

package sandbox

import (
	"fmt"
	"io/fs"
	"syscall"
)

// inode names a file whatever it is called.
func inode(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
	}
	return ""
}

// sameDevice says whether a rename between two folders could work. When in
// doubt it could.
func sameDevice(a, b string) bool {
	var first, second syscall.Stat_t
	if syscall.Stat(a, &first) != nil || syscall.Stat(b, &second) != nil {
		return true
	}
	return first.Dev == second.Dev
}
