//go:build linux

package jail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// probeEnv makes this test binary the program in a jail: it tries what its value
// names, and prints what came of it.
const probeEnv = "TENDRIL_JAIL_PROBE"

func TestMain(m *testing.M) {
	Main()
	if what := os.Getenv(probeEnv); what != "" {
		probes[what]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// inJail runs a probe of this binary in a jail.
func inJail(t *testing.T, probe string, spec Spec, use func(*Process)) (string, *os.ProcessState) {
	t.Helper()
	return inJailAs(t, nil, probe, spec, use)
}

func inJailAs(t *testing.T, as *User, probe string, spec Spec, use func(*Process)) (string, *os.ProcessState) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "")
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := Command(cmd, "/proc/self/exe", as)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Skip("no namespaces here: ", err)
	}
	self, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := Libraries(self)
	if err != nil {
		t.Fatal(err)
	}
	spec.Path, spec.Args = self, []string{"probe"}
	spec.Env = append(spec.Env, probeEnv+"="+probe)
	if spec.Dir == "" {
		spec.Dir = "/"
	}
	spec.Mounts = append(append([]Mount{{Path: self, Kind: Program}}, libraries...), spec.Mounts...)
	if err := p.Enter(spec); err != nil {
		_ = cmd.Wait()
		t.Fatalf("%v\n%s", err, out.String())
	}
	if use != nil {
		use(p)
	}
	_ = cmd.Wait()
	return out.String(), cmd.ProcessState
}

var probes = map[string]func(){
	"calls": probeCalls, "files": probeFiles, "sight": probeSight, "proxy": probeProxy, "limits": probeLimits,
	"parent": probeParent,
}

func say(what string, err error) {
	word := "works"
	if err != nil {
		word = "no: " + err.Error()
	}
	fmt.Printf("%s: %s\n", what, word)
}

// probeCalls tries system calls that change the machine or look around in it.
func probeCalls() {
	call := func(what string, number uintptr, args ...uintptr) {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno != 0 {
			say(what, errno)
			return
		}
		say(what, nil)
	}
	socket := func(what string, family, kind int) {
		fd, err := unix.Socket(family, kind, 0)
		if err == nil {
			unix.Close(fd)
		}
		say(what, err)
	}
	say("unshare", unix.Unshare(unix.CLONE_NEWUSER))
	say("mount", unix.Mount("x", "/tmp", "tmpfs", 0, ""))
	say("remount", unix.Mount("", "/", "", unix.MS_REMOUNT, ""))
	say("chroot", unix.Chroot("/"))
	say("setns", unix.Setns(0, 0))
	say("sethostname", unix.Sethostname([]byte("x")))
	say("setuid", unix.Setuid(0))
	say("ptrace", unix.PtraceAttach(1))
	socket("netlink", unix.AF_NETLINK, unix.SOCK_RAW)
	socket("packet", unix.AF_PACKET, unix.SOCK_RAW)
	socket("vsock", unix.AF_VSOCK, unix.SOCK_STREAM)
	socket("alg", unix.AF_ALG, unix.SOCK_SEQPACKET)
	socket("raw", unix.AF_INET, unix.SOCK_RAW)
	call("bpf", unix.SYS_BPF)
	call("io_uring", unix.SYS_IO_URING_SETUP, 1)
	call("keyctl", unix.SYS_KEYCTL)
	call("perf", unix.SYS_PERF_EVENT_OPEN)
	call("userfaultfd", unix.SYS_USERFAULTFD)
	call("clone3", unix.SYS_CLONE3)
	call("clone with namespaces", unix.SYS_CLONE, unix.CLONE_NEWUSER)
	call("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT)
	call("process_vm_readv", unix.SYS_PROCESS_VM_READV, 1)
	call("personality", unix.SYS_PERSONALITY, 0xffffffff)
	socket("unix", unix.AF_UNIX, unix.SOCK_STREAM)
	for what, kind := range map[string]int{"datagrams": unix.SOCK_DGRAM, "packets": unix.SOCK_SEQPACKET} {
		_, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		say("a pair for "+what, err)
	}
	call("clone of a process", unix.SYS_CLONE, uintptr(unix.SIGCHLD))
	_, err := unix.MemfdCreate("x", 0)
	say("memfd", err)
	say("fallocate", unix.Fallocate(0, 0, 0, 1))
	call("outlive", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0)
	call("outlive, with a bit too many", unix.SYS_PRCTL, 1<<32|unix.PR_SET_PDEATHSIG, 0)
	call("setxattrat", 463)
	call("a call of a later kernel", 999)
	otherProcessor(say)
}

// TestJail_SystemCalls: nothing of that works, for root and anybody.
func TestJail_SystemCalls(t *testing.T) {
	out, state := inJail(t, "calls", Spec{}, nil)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if !state.Success() || len(lines) != 33+otherProcessors || slices.ContainsFunc(lines, func(l string) bool { return !strings.Contains(l, ": no: ") }) {
		t.Errorf("%s\n%s", state, out)
	}
}

func probeFiles() {
	ws := os.Getenv("WS")
	create := func(name string, mode uint32) error {
		fd, err := unix.Open(filepath.Join(ws, name), unix.O_CREAT|unix.O_RDWR, mode)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	say("write", os.WriteFile(filepath.Join(ws, "new"), nil, 0o600))
	say("tmp", os.WriteFile("/var/tmp/x", nil, 0o600))
	say("tools", os.WriteFile(filepath.Join(ws, "tools", "x"), nil, 0o600))
	say("remove tools", os.RemoveAll(filepath.Join(ws, "tools")))
	say("rename tools", os.Rename(filepath.Join(ws, "tools"), filepath.Join(ws, "other")))
	say("set-user-ID by open", create("a", unix.S_ISUID|0o755))
	_, err := unix.Open(ws, unix.O_TMPFILE|unix.O_RDWR, unix.S_ISUID|0o755)
	say("set-user-ID without a name", err)
	say("set-user-ID by chmod", os.Chmod(filepath.Join(ws, "new"), os.ModeSetuid|0o755))
	say("device", unix.Mknod(filepath.Join(ws, "dev"), unix.S_IFCHR|0o666, 0x103))
	_, err = os.ReadFile(filepath.Join(ws, ".env"))
	say("closed file", err)
	_, err = os.ReadDir(filepath.Join(ws, ".git"))
	say("closed folder", err)
	say("replace closed", os.Rename(filepath.Join(ws, "new"), filepath.Join(ws, ".env")))
	_, err = os.ReadFile(filepath.Join(ws, "link"))
	say("link out", err)
	_, err = os.ReadFile("/etc/passwd")
	say("outside", err)
	say("root", os.WriteFile("/x", nil, 0o600))
	say("run", exec.Command(filepath.Join(ws, "program")).Run())
}

func TestJail_Files(t *testing.T) {
	ws, outside := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(ws, "tools", "index.json"): "{}", filepath.Join(ws, ".env"): "secret", filepath.Join(ws, ".git", "config"): "secret",
		filepath.Join(outside, "secret"): "secret", filepath.Join(ws, "program"): "#!/bin/sh\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	out, _ := inJail(t, "files", Spec{Env: []string{"WS=" + ws}, Dir: ws, Mounts: []Mount{
		{Path: ws, Kind: Write}, {Path: filepath.Join(ws, "tools"), Kind: Read}, {Path: filepath.Join(ws, ".env"), Kind: Closed},
		{Path: filepath.Join(ws, ".git"), Kind: Closed}, {Path: filepath.Join(ws, "nothing"), Kind: Closed}, {Path: "/var/tmp", Kind: Tmp, Bytes: 1 << 20, Files: 10},
	}}, nil)
	for line := range strings.Lines(out) {
		what, word, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if (word == "works") != (what == "write" || what == "tmp") {
			t.Errorf("%s: %s", what, word)
		}
	}
	if strings.Count(out, "\n") != 16 || strings.Contains(out, "secret") {
		t.Error(out)
	}
	if entries, err := os.ReadDir(ws); err != nil || len(entries) != 6 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

// probeSight prints what can be seen of the machine.
func probeSight() {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") || strings.HasPrefix(line, "Seccomp:") {
			fmt.Print(strings.ReplaceAll(line, "\t", " "))
		}
	}
	host, _ := os.Hostname()
	fmt.Println("host", host, "uid", os.Getuid(), "pid", os.Getpid())
	descriptors, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range descriptors {
		target, _ := os.Readlink(link)
		fmt.Println("descriptor", target)
	}
	for _, dir := range []string{"/", "/proc", "/dev"} {
		entries, _ := os.ReadDir(dir)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		fmt.Println(dir, strings.Join(names, " "))
	}
	interfaces, err := net.Interfaces()
	fmt.Println("interfaces", len(interfaces), err != nil)
}

func TestJail_Sight(t *testing.T) {
	file, err := os.Open(os.Args[0]) // an open file must not come along
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, _ := inJail(t, "sight", Spec{}, nil)
	for _, want := range []string{
		"CapInh: 0000000000000000", "CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapBnd: 0000000000000000", "CapAmb: 0000000000000000",
		"NoNewPrivs: 1", "Seccomp: 2", "host sandbox uid 1000 pid 1", "/proc 1 self thread-self\n", "interfaces 0 true",
		"/dev fd full null random stderr stdin stdout urandom zero\n", "descriptor /dev/null\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "etc") || strings.Contains(out, "home") || strings.Contains(out, "descriptor socket") || strings.Contains(out, filepath.Base(os.Args[0])) {
		t.Errorf("it sees the machine:\n%s", out)
	}
}

func probeProxy() {
	conn, err := net.DialTimeout("tcp", ProxyAddress, time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprint(conn, "ping")
	buf := make([]byte, 4)
	n, _ := conn.Read(buf)
	fmt.Println("got", string(buf[:n]))
	_, err = net.DialTimeout("tcp", "10.0.0.1:80", time.Second)
	fmt.Println("elsewhere:", err)
}

func TestJail_ProxyIsTheOnlyWayOut(t *testing.T) {
	out, _ := inJail(t, "proxy", Spec{Proxy: true}, func(p *Process) {
		defer p.Listener.Close()
		conn, err := p.Listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		buf := make([]byte, 4)
		n, _ := conn.Read(buf)
		fmt.Fprint(conn, strings.ToUpper(string(buf[:n])))
	})
	if !strings.Contains(out, "got PING") || !strings.Contains(out, "elsewhere: dial tcp 10.0.0.1:80: connect: network is unreachable") {
		t.Error(out)
	}
	if out, _ := inJail(t, "proxy", Spec{}, nil); strings.Contains(out, "got") {
		t.Errorf("a way out without a proxy: %s", out)
	}
}

func probeLimits() {
	say("small file", os.WriteFile("/var/tmp/a", make([]byte, 1000), 0o600))
	say("large file", os.WriteFile("/var/tmp/b", make([]byte, 3<<20), 0o600))
	var err error
	var open []*os.File
	for err == nil && len(open) < 100 {
		var f *os.File
		f, err = os.Open("/dev/null")
		open = append(open, f)
	}
	say("descriptors", err)
	for i := 0; err == nil || i < 20; i++ {
		err = os.WriteFile(fmt.Sprint("/var/tmp/f", i), nil, 0o600)
	}
	say("files", err)
}

func TestJail_Limits(t *testing.T) {
	out, _ := inJail(t, "limits", Spec{
		Limits: Limits{FileBytes: 2 << 20, Descriptors: 50}, Mounts: []Mount{{Path: "/var/tmp", Kind: Tmp, Bytes: 4 << 20, Files: 10}},
	}, nil)
	if strings.Count(out, "works") != 1 || !strings.Contains(out, "large file: no: write /var/tmp/b: file too large") {
		t.Error(out)
	}
}

func probeParent() {
	var signal int32
	err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&signal)), 0, 0, 0)
	fmt.Println("signal", signal, err)
}

// TestJail_DiesWithItsParent: the kernel ends it when we are killed, also when it
// became another user.
func TestJail_DiesWithItsParent(t *testing.T) {
	users := []*User{nil}
	if os.Geteuid() == 0 {
		users = append(users, &User{UID: 65534, GID: 65534})
	}
	for _, as := range users {
		if out, _ := inJailAs(t, as, "parent", Spec{}, nil); out != "signal 9 <nil>\n" {
			t.Errorf("as %v: %s", as, out)
		}
	}
}

// TestJail_SetupFails: what cannot be set up is an error, and no process stays.
func TestJail_SetupFails(t *testing.T) {
	for name, spec := range map[string]Spec{
		"no such program": {Path: "/no/such", Args: []string{"x"}, Dir: "/"},
		"no such source":  {Path: "/bin/true", Args: []string{"x"}, Dir: "/", Mounts: []Mount{{Path: "/no/such", Kind: Read}}},
		"a link":          {Path: "/bin/true", Args: []string{"x"}, Dir: "/", Mounts: []Mount{{Path: "/proc/self/exe", Kind: Read}}},
	} {
		runtime.LockOSThread()
		cmd := exec.Command("")
		p, err := Command(cmd, "/proc/self/exe", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Skip("no namespaces here: ", err)
		}
		if err := p.Enter(spec); err == nil || !strings.Contains(err.Error(), "did not start") {
			t.Errorf("%s: %v", name, err)
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("%s: it ended well", name)
		}
		runtime.UnlockOSThread()
	}
}
