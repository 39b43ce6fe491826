package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// childName is what our binary is called when it is started to become a jail.
	childName = "tendril-jail"
	// controlFD is the child's end of the control socket.
	controlFD = 3
	// The numbers of the user and the group inside.
	inside = 1000

	// setupTime bounds how long a jail may take to stand.
	setupTime = 20 * time.Second
	maxSpec   = 4 << 20
)

// What the child says on the control socket. The socket closes when it becomes
// the program.
const (
	saysListener = 'L' // the listener comes with it
	saysReady    = 'R'
	saysFailed   = 'E' // followed by the reason
)

// Process is a jail on its way. It is used by the goroutine that made it, which
// stays locked to its thread until the process is gone: the kernel kills the
// process when that thread ends.
type Process struct {
	Cmd *exec.Cmd
	// Listener is the proxy's, if the Spec asked for one. The caller closes it.
	Listener net.Listener

	control *net.UnixConn
	other   bool // it becomes another user than we are
}

// Command prepares a jail in cmd, which has only its streams set yet: they are
// the program's. self is the path of a binary whose main calls [Main] first. as
// is whom the program runs as; nil is us, and only root may name another.
func Command(cmd *exec.Cmd, self string, as *User) (*Process, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the control socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	defer ours.Close() // FileConn has a copy
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, fmt.Errorf("open the control socket: %w", err)
	}
	cmd.Path, cmd.Args = self, []string{childName}
	cmd.Env = []string{"GOGC=off", "GOMAXPROCS=1"} // it lives for milliseconds
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		Setsid:    true,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE},
	}
	if as != nil { // root opens what the other user may not reach, and becomes them at last
		attr := cmd.SysProcAttr
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: inside, HostID: as.UID, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: inside, HostID: as.GID, Size: 1}}
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_SETUID, unix.CAP_SETGID)
	}
	return &Process{Cmd: cmd, control: conn.(*net.UnixConn), other: as != nil}, nil
}

// Start starts the process, which waits for its Spec.
func (p *Process) Start() error {
	err := p.Cmd.Start()
	p.Cmd.ExtraFiles[0].Close()
	if err != nil {
		p.control.Close()
	}
	return err
}

// Enter sends the Spec and waits until the process has become the program. After
// an error the process is dead or dies; the caller waits for it.
func (p *Process) Enter(spec Spec) error {
	defer p.control.Close()
	spec.SwitchUser = p.other
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("describe the jail: %w", err)
	}
	if len(raw) > maxSpec {
		return errors.New("describe the jail: it has too many paths")
	}
	if err := errors.Join(p.control.SetDeadline(time.Now().Add(setupTime)), p.send(raw)); err != nil {
		return p.failed(err)
	}
	ready := false
	for {
		message, file, err := p.receive()
		switch {
		case err != nil:
			return p.failed(err)
		case len(message) == 0 && ready:
			return nil // the socket closed with the exec
		case len(message) == 0:
			return p.failed(errors.New("it ended without a word"))
		case message[0] == saysListener && file != nil:
			if p.Listener, err = net.FileListener(file); err != nil {
				return p.failed(err)
			}
			file.Close()
		case message[0] == saysReady:
			ready = true
		case message[0] == saysFailed:
			return p.failed(errors.New(string(message[1:])))
		}
	}
}

// Abandon ends a process that gets no Spec. The caller waits for it.
func (p *Process) Abandon() { p.control.Close() }

func (p *Process) failed(err error) error {
	if p.Listener != nil {
		p.Listener.Close()
		p.Listener = nil
	}
	_ = p.Cmd.Process.Kill() // it is useless now
	return fmt.Errorf("the operating system layer did not start: %w", err)
}

// packet is how much goes into one message: the socket's buffers are small.
const packet = 64 << 10

// send writes the length and the text.
func (p *Process) send(raw []byte) error {
	if _, err := fmt.Fprintf(p.control, "%d", len(raw)); err != nil {
		return err
	}
	for len(raw) > 0 {
		n := min(len(raw), packet)
		if _, err := p.control.Write(raw[:n]); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

// receive returns one message and the file that came with it; nothing at the
// end.
func (p *Process) receive() ([]byte, *os.File, error) {
	buf, oob := make([]byte, 8<<10), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := p.control.ReadMsgUnix(buf, oob)
	if err != nil || n == 0 {
		if errors.Is(err, unix.ECONNRESET) || n == 0 {
			err = nil
		}
		return nil, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) == 0 {
		return buf[:n], nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return buf[:n], nil, err
	}
	unix.CloseOnExec(fds[0])
	return buf[:n], os.NewFile(uintptr(fds[0]), "listener"), nil
}
