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

// freeSpace is what a file system can still hold. The number of files is -1 when
// it has none.
func freeSpace(path string) space {
	var stat unix.Statfs_t
	if unix.Statfs(path, &stat) != nil {
		return space{files: -1}
	}
	free := space{files: int64(stat.Ffree), bytes: int64(stat.Bfree) * stat.Bsize}
	if stat.Files == 0 {
		free.files = -1
	}
	return free
}

// made reports whether a file was made since then, and the bytes that it takes.
func made(path string, since time.Time) (bytes int64, isNew bool) {
	stat, ok := look(path, unix.AT_SYMLINK_NOFOLLOW)
	return int64(stat.Blocks) * 512, ok && born(stat).After(since)
}

// unnamed is what a process holds open of new files that have no name any more.
func unnamed(pid int, since time.Time) (held space) {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := readDir(folder) // without it nothing is known
	for _, entry := range entries {
		if stat, ok := look(folder+"/"+entry.Name(), 0); ok && stat.Nlink == 0 && stat.Mode&unix.S_IFMT == unix.S_IFREG && born(stat).After(since) {
			held.files++
			held.bytes += int64(stat.Blocks) * 512
		}
	}
	return held
}

func look(path string, flags int) (stat unix.Statx_t, ok bool) {
	err := unix.Statx(unix.AT_FDCWD, path, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &stat)
	return stat, err == nil
}

// born is when a file was made or, where that is not kept, last changed in any
// way. A program can set neither.
func born(stat unix.Statx_t) time.Time {
	at := stat.Ctime
	if stat.Mask&unix.STATX_BTIME != 0 {
		at = stat.Btime
	}
	return time.Unix(at.Sec, int64(at.Nsec))
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

// memoryIsShort reports whether less than [lowMemory] percent can be had.
func memoryIsShort() bool {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return false
	}
	var total, available int64
	for line := range strings.Lines(string(raw)) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		n, _ := strconv.ParseInt(fields[0], 10, 64) // the kernel writes numbers
		switch name {
		case "MemTotal":
			total = n
		case "MemAvailable":
			available = n
		}
	}
	return total > 0 && available*100 < total*lowMemory
}
