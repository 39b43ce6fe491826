//go:build unix

package sandbox

import "syscall"

// sameDevice says whether a rename between two folders could work. When in
// doubt it could.
func sameDevice(a, b string) bool {
	var first, second syscall.Stat_t
	if syscall.Stat(a, &first) != nil || syscall.Stat(b, &second) != nil {
		return true
	}
	return first.Dev == second.Dev
}
