package workspace

import "golang.org/x/sys/unix"

// swap swaps two names at once.
func swap(a, b string) {
	if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) != nil {
		swapInSteps(a, b)
	}
}

func pipe(path string) error { return unix.Mkfifo(path, 0o600) }
