package jail

import (
	"slices"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// forbidden are the system calls that no capability needs: those that change
// the machine, look into other processes, or are known as ways through a
// kernel's walls. They fail with EPERM.
var forbidden = []string{
	// mounts, namespaces, roots
	"mount", "umount2", "umount", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick",
	"mount_setattr", "setns", "unshare", "statmount", "listmount",
	// other processes
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd", "pidfd_open", "pidfd_send_signal",
	// the kernel and the machine
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "init_module", "finit_module",
	"delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "syslog", "acct", "quotactl", "quotactl_fd",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime", "sethostname", "setdomainname", "iopl", "ioperm", "vhangup",
	"modify_ldt", "lookup_dcookie", "nfsservctl", "vm86", "vm86old", "uselib", "ustat", "sysfs", "_sysctl", "personality",
	// keys, handles, watches
	"add_key", "request_key", "keyctl", "name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark",
	"mbind", "set_mempolicy", "migrate_pages", "move_pages", "set_mempolicy_home_node", "vmsplice", "memfd_secret",
	"setxattr", "lsetxattr", "fsetxattr",
	// memory and disk that no limit sees
	"mq_open", "shmget", "semget", "msgget", "memfd_create", "fallocate",
	// processes: a capability is one, with threads
	"fork", "vfork",
}

// newest is the last system call that was looked at for this list, that of Linux
// 6.10. A later one does not exist: libraries fall back. From 424 on all
// processors have the same numbers.
const newest = unix.SYS_MSEAL

const (
	setIDs     = unix.S_ISUID | unix.S_ISGID
	namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
)

// forbiddenArguments are calls that are fine but with some arguments.
var forbiddenArguments = []seccomp.NameWithConditions{
	// set-user-ID files
	withBits("chmod", 1, setIDs), withBits("fchmod", 1, setIDs), withBits("fchmodat", 2, setIDs), withBits("fchmodat2", 2, setIDs),
	creating("open", 1, 2), creating("openat", 2, 3),
	withBits("mkdir", 1, setIDs), withBits("mkdirat", 2, setIDs), withBits("creat", 1, setIDs),
	withBits("mknod", 1, unix.S_IFCHR), withBits("mknodat", 2, unix.S_IFCHR), withBits("mknod", 1, setIDs), withBits("mknodat", 2, setIDs),
	// namespaces, processes
	withBits("clone", 0, namespaces),
	{Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsNotSet, Value: unix.CLONE_THREAD}}},
	// typing into a terminal
	equal("ioctl", 1, unix.TIOCSTI), equal("ioctl", 1, unix.TIOCLINUX),
	// outliving us
	equal("prctl", 0, unix.PR_SET_PDEATHSIG),
	// A Unix socket leads to whoever listens in a granted folder, past the egress
	// proxy. A connected pair of streams leads nowhere; one of datagrams could be
	// sent elsewhere.
	differs("socket", 0, unix.AF_INET, unix.AF_INET6),
	differs("socketpair", 0, unix.AF_UNIX), withBits("socketpair", 1, unix.SOCK_DGRAM|4), // 4: of SOCK_SEQPACKET
}

func withBits(name string, argument uint32, bits uint64) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{{Argument: argument, Operation: seccomp.BitsSet, Value: bits}}}
}

// creating is a call that makes a file, with a name or without, with a set-user-ID bit.
func creating(name string, flags, mode uint32) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{
		{Argument: flags, Operation: seccomp.BitsSet, Value: unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY}, {Argument: mode, Operation: seccomp.BitsSet, Value: setIDs}}}
}

// equal compares the lower half of an argument, as the kernel does where it is
// an int.
func equal(name string, argument uint32, value uint32) seccomp.NameWithConditions {
	all := seccomp.ArgumentConditions{{Argument: argument, Operation: seccomp.BitsNotSet, Value: uint64(^value)}}
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if value&bit != 0 {
			all = append(all, seccomp.Condition{Argument: argument, Operation: seccomp.BitsSet, Value: uint64(bit)})
		}
	}
	return seccomp.NameWithConditions{Name: name, Conditions: all}
}

// differs is a call with another argument than these.
func differs(name string, argument uint32, values ...uint64) seccomp.NameWithConditions {
	var all seccomp.ArgumentConditions
	for _, value := range values {
		all = append(all, seccomp.Condition{Argument: argument, Operation: seccomp.NotEqual, Value: value})
	}
	return seccomp.NameWithConditions{Name: name, Conditions: all}
}

// filterCalls installs the filter for this thread, which becomes the program.
func filterCalls(*Spec) error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	if err := filterNumbers(uint32(info.ID)); err != nil {
		return err
	}
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: policy(known(info))})
}

// filterNumbers turns away what the list of names does not cover: calls in the
// way of another processor, such as those of 32 bits, whose numbers mean other
// things, and those after newest.
func filterNumbers(processor uint32) error {
	const number, arch, none = 0, 4, unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS) // offsets in seccomp_data(2)
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	program := []unix.SockFilter{
		load(arch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: processor, Jf: 2},
		load(number),
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: newest, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: none},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return errno
	}
	return nil
}

// known returns whether a system call exists on this processor.
func known(info *arch.Info) func(string) bool {
	names := make(map[string]bool, len(info.SyscallNumbers))
	for _, name := range info.SyscallNumbers {
		names[name] = true
	}
	return func(name string) bool { return names[name] }
}

func policy(exists func(string) bool) seccomp.Policy {
	names := slices.DeleteFunc(slices.Clone(forbidden), func(name string) bool { return !exists(name) })
	conditions := slices.DeleteFunc(slices.Clone(forbiddenArguments), func(n seccomp.NameWithConditions) bool { return !exists(n.Name) })
	p := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Action: seccomp.ActionErrno, Names: names, NamesWithCondtions: conditions},
	}}
	for _, name := range []string{"clone3", "openat2"} { // their flags are in memory, where no filter looks: libraries fall back
		if exists(name) {
			p.Syscalls = append(p.Syscalls, seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{name}})
		}
	}
	return p
}
