package session

import (
	"fmt"
	"os"
	"strings"
)

// startTime is when a process began, in ticks since the machine did; "" when
// there is no such process. See proc_pid_stat(5), field 22.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name of the program, field 2, may hold anything; it ends with the last ")".
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const state, started = 3, 22
	if len(fields) <= started-state || fields[0] == "Z" {
		return ""
	}
	return fields[started-state]
}

// machine names where a pid means the same process: this boot and this pid
// namespace.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}
