package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is what the kernel counts processor time in, on every processor that
// Go knows (USER_HZ).
const clockTick = 10 * time.Millisecond

// measure adds up what a process and its descendants use. It reports false when
// the process is gone.
func measure(pid int) (Peaks, bool) {
	var total Peaks
	pids := []int{pid}
	for i := 0; i < len(pids) && i < 1000; i++ {
		one, ok := measureOne(pids[i])
		if !ok && i == 0 {
			return Peaks{}, false
		}
		total.RSSBytes += one.RSSBytes
		total.WrittenBytes += one.WrittenBytes
		total.Threads += one.Threads
		total.CPU += one.CPU
		pids = append(pids, children(pids[i])...)
	}
	return total, true
}

func measureOne(pid int) (Peaks, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Peaks{}, false
	}
	_, rest, found := bytes.Cut(stat, []byte(") ")) // the name before it may hold anything
	for more := true; more; {
		var after []byte
		if _, after, more = bytes.Cut(rest, []byte(") ")); more {
			rest = after
		}
	}
	fields := strings.Fields(string(rest))
	if !found || len(fields) < 22 || fields[0] == "Z" {
		return Peaks{}, false
	}
	number := func(field int) int64 { // as proc(5) numbers them
		n, _ := strconv.ParseInt(fields[field-3], 10, 64) // the kernel writes numbers
		return n
	}
	return Peaks{
		RSSBytes:     number(24) * int64(os.Getpagesize()),
		Threads:      number(20),
		CPU:          time.Duration(number(14)+number(15)) * clockTick,
		WrittenBytes: written(pid),
	}, true
}

// written is how much a process has written to disks.
func written(pid int) int64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)) // without it nothing is known
	for line := range strings.Lines(string(raw)) {
		if value, found := strings.CutPrefix(line, "write_bytes: "); found {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

func children(pid int) []int {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // an old kernel tells none
	var pids []int
	for _, field := range strings.Fields(string(raw)) {
		if n, err := strconv.Atoi(field); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// freeFiles is how many more files a file system can hold, or -1.
func freeFiles(path string) int64 {
	var stat unix.Statfs_t
	if unix.Statfs(path, &stat) != nil || stat.Files == 0 {
		return -1
	}
	return int64(stat.Ffree)
}

// limitProcess sets the limits that the kernel keeps on a process that started
// without the operating system layer.
func limitProcess(pid int, l Limits) {
	for resource, value := range map[int]uint64{
		unix.RLIMIT_FSIZE: uint64(l.FileMB) << 20, unix.RLIMIT_NOFILE: descriptors, unix.RLIMIT_CORE: 0,
	} {
		_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil) // it may be gone already
	}
}
