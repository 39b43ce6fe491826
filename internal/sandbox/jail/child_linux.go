package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// failedCode is the exit code of a jail that could not be set up.
const failedCode = 125

// Main becomes the program of a jail if this process was started for that, and
// then never returns. Else it does nothing. A binary that is given to [Command]
// calls it before anything else.
func Main() {
	if len(os.Args) != 1 || os.Args[0] != childName {
		return
	}
	runtime.LockOSThread()
	err := become()
	if err == nil {
		os.Exit(0) // nobody wants it
	}
	_ = unix.Sendmsg(controlFD, append([]byte{saysFailed}, err.Error()...), nil, nil, 0)
	os.Exit(failedCode)
}

// become returns only when it cannot, or nil when no Spec came.
func become() error {
	unix.CloseOnExec(controlFD)
	spec, err := readSpec()
	if spec == nil || err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(*Spec) error
	}{
		{"open the listener", listen},
		{"build the file system", buildRoot},
		{"name the machine", func(*Spec) error { return errors.Join(unix.Sethostname([]byte("sandbox")), unix.Setdomainname(nil)) }},
		{"set the limits", setLimits},
		{"close what is open", func(*Spec) error { return unix.CloseRange(controlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) }},
		{"go to the working folder", func(s *Spec) error { return unix.Chdir(s.Dir) }},
		{"give up capabilities", dropCapabilities},
		{"die with the parent", dieWithParent},
		{"say that all is ready", func(*Spec) error { return unix.Sendmsg(controlFD, []byte{saysReady}, nil, nil, 0) }},
		{"filter system calls", filterCalls},
	} {
		if err := step.do(spec); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return fmt.Errorf("start %s: %w", spec.Path, unix.Exec(spec.Path, spec.Args, spec.Env))
}

// readSpec waits for the Spec. It is nil when the parent is gone.
func readSpec() (*Spec, error) {
	buf := make([]byte, packet)
	n, err := read(buf)
	if err != nil || n == 0 {
		return nil, err
	}
	size, err := strconv.Atoi(string(buf[:n]))
	if err != nil || size > maxSpec {
		return nil, errors.New("the description of the jail is damaged")
	}
	raw := make([]byte, 0, size)
	for len(raw) < size {
		n, err := read(buf)
		if err != nil || n == 0 {
			return nil, err
		}
		raw = append(raw, buf[:n]...)
	}
	var spec Spec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("the description of the jail is damaged: %w", err)
	}
	return &spec, nil
}

func read(buf []byte) (int, error) {
	for {
		n, err := unix.Read(controlFD, buf)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// listen brings up loopback and sends the proxy's listener to the parent.
func listen(spec *Spec) error {
	if !spec.Proxy {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 3128}); err != nil {
		return err
	}
	if err := unix.Listen(fd, 128); err != nil {
		return err
	}
	return unix.Sendmsg(controlFD, []byte{saysListener}, unix.UnixRights(fd), nil, 0)
}

func setLimits(spec *Spec) error {
	l := spec.Limits
	for resource, value := range map[int]int64{
		unix.RLIMIT_FSIZE: l.FileBytes, unix.RLIMIT_NOFILE: l.Descriptors, unix.RLIMIT_NPROC: l.Threads, unix.RLIMIT_CPU: l.CPUSeconds,
	} {
		if value <= 0 {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return err
		}
		most := min(uint64(value), now.Max) // we may have less to give than that
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// dieWithParent asks for the signal anew: the kernel forgets it when a process
// becomes another user. A parent that is gone already does not hear that all is
// ready.
func dieWithParent(*Spec) error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// dropCapabilities gives up every capability for good, and root if we are that:
// no bit in any set, none to gain by an exec.
func dropCapabilities(spec *Spec) error {
	for c := uintptr(0); c <= 63; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	if spec.SwitchUser {
		if err := errors.Join(unix.Setresgid(inside, inside, inside), unix.Setresuid(inside, inside, inside)); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
