//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// hungUp reports whether what is written to f can reach nobody.
func hungUp(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	_ = conn.Control(func(fd uintptr) { // it fails when f is closed
		fds := []unix.PollFd{{Fd: int32(fd)}}
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 {
			gone = fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	})
	return gone
}
