package jail

import (
	"slices"

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
	"setxattr", "lsetxattr", "fsetxattr", "mq_open", "shmget", "semget", "msgget",
}

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
	// namespaces
	withBits("clone", 0, namespaces),
	// typing into a terminal
	equal("ioctl", 1, unix.TIOCSTI), equal("ioctl", 1, unix.TIOCLINUX),
}

// families are the only kinds of sockets there are.
var families = []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}

func withBits(name string, argument uint32, bits uint64) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{{Argument: argument, Operation: seccomp.BitsSet, Value: bits}}}
}

// creating is a call that makes a file with a set-user-ID bit.
func creating(name string, flags, mode uint32) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{
		{Argument: flags, Operation: seccomp.BitsSet, Value: unix.O_CREAT}, {Argument: mode, Operation: seccomp.BitsSet, Value: setIDs}}}
}

func equal(name string, argument uint32, value uint64) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{{Argument: argument, Operation: seccomp.Equal, Value: value}}}
}

// filterCalls installs the filter for this thread, which becomes the program.
func filterCalls(*Spec) error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: policy(known(info))})
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
	for _, call := range []string{"socket", "socketpair"} {
		var other seccomp.ArgumentConditions
		for _, family := range families {
			other = append(other, seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: family})
		}
		conditions = append(conditions, seccomp.NameWithConditions{Name: call, Conditions: other})
	}
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
