// Package host is the app's engine room: an HTTP server for one person's browser
// or window, on this machine. It drives the agent, a child process, over the
// Agent Client Protocol as an editor does, and shows what happens as events.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/workspace"
)

// Options are what a host needs.
type Options struct {
	Home     string // where host.json is; not empty
	User     string // the home folder of the user
	Version  string
	Host     string // address to listen at; "" is 127.0.0.1. Another than loopback needs a password.
	Port     int    // 0: that of the last time, if it is free, else any
	Password string // "": one signs in by links only
	UI       fs.FS  // the built pages; nil when they were not built
	Log      func(text string)

	// Command makes the command of the agent, which is not started yet.
	Command  func() *exec.Cmd
	Sessions *session.Store
	// Folder is where the capabilities of new sessions work.
	Folder func() (string, error)
	// Files lends the workspace, as the settings are now.
	Files func(ctx context.Context, use func(*workspace.Workspace) error) error
	// Reveal opens a folder in the system's file manager.
	Reveal func(folder string) error
	// Show brings the window of the app forward, or opens one at a link. It says
	// whether there is one.
	Show func(link string) bool
	Services
}

// Host is one host. Its mutex guards the conversations and orders what is
// published of them.
type Host struct {
	Options
	access     *access
	hub        *hub
	debug      *hub
	supervisor *supervisor
	listener   net.Listener
	handler    http.Handler
	services   services
	started    time.Time

	mu            sync.Mutex
	conversations map[string]*conversation
}

// New listens, and remembers where. Nothing is served before [Host.Serve].
func New(o Options) (*Host, error) {
	if o.Host == "" || o.Host == "localhost" { // by that name a browser may find somebody else at ::1
		o.Host = "127.0.0.1"
	}
	if !isLoopback(o.Host) && len(o.Password) < MinPassword {
		return nil, fmt.Errorf("with --host %s others can connect, over a network that may read along, and whoever signs in can run programs here as you; "+
			"that needs a password of %d characters or more: tendril secret set %s", o.Host, MinPassword, PasswordName)
	}
	if o.Password != "" && len(o.Password) < MinPassword { // others of this machine can try it
		return nil, fmt.Errorf("the password of the app is shorter than %d characters: tendril secret set %s, or remove it", MinPassword, PasswordName)
	}
	id, err := readIdentity(o.Home)
	if err != nil {
		return nil, err
	}
	listener, err := listen(o.Host, o.Port, id.Port)
	if err != nil {
		return nil, err
	}
	at := listener.Addr().(*net.TCPAddr)
	port, address := at.Port, at.IP.String()
	if at.IP.IsUnspecified() {
		address = "127.0.0.1"
	}
	if id.Port != port || id.Address != address {
		id.Port, id.Address = port, address
		if err := id.write(o.Home); err != nil {
			return nil, errors.Join(fmt.Errorf("the host's secret cannot be kept: %w", err), listener.Close())
		}
	}
	h := &Host{
		Options: o, hub: newHub(), debug: newHub(), listener: listener, started: time.Now(),
		access:        newAccess(id, o.Host, port, o.Password),
		conversations: map[string]*conversation{},
	}
	h.supervisor = newSupervisor(o.Command, h, func(a Agent) { h.hub.publish("agent", a) }, h.lost)
	h.handler = h.routes()
	return h, nil
}

// PasswordName is the secret with the password of the host.
const PasswordName = "TENDRIL_HOST_PASSWORD"

// MinPassword is the length of the shortest password, in bytes.
const MinPassword = 12

// listen takes the wanted port, else the one of the last time, else any.
func listen(host string, wanted, last int) (net.Listener, error) {
	at := func(port int) (net.Listener, error) {
		return (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	}
	if wanted != 0 {
		listener, err := at(wanted)
		if err != nil {
			return nil, fmt.Errorf("cannot listen at port %d: %w; choose another one with --port", wanted, err)
		}
		return listener, nil
	}
	if listener, err := at(last); err == nil {
		return listener, nil
	}
	listener, err := at(0)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	return listener, nil
}

// Link is an address that signs in who opens it, once: the page there redeems its
// code.
func (h *Host) Link() string { return h.Address() + "/open?code=" + h.access.code() }

// Address is where the host is.
func (h *Host) Address() string {
	name := h.Host
	if ip := net.ParseIP(name); ip != nil && ip.IsUnspecified() {
		name = "localhost"
	}
	return "http://" + net.JoinHostPort(name, strconv.Itoa(h.access.port))
}

// Serve serves until ctx ends. Then the agent and all that it started are gone.
func (h *Host) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: h.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withPeer,
	}
	var group sync.WaitGroup
	group.Go(func() { h.supervisor.run(ctx) })
	group.Go(func() { h.attend(ctx) })
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(h.listener) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	cancel() // ends streams of events
	group.Wait()
	closing, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if e := server.Shutdown(closing); e != nil {
		_ = server.Close()
	}
	return err
}

// overheard implements [peer]: it is what the debug view shows.
func (h *Host) overheard(direction string, line []byte) {
	h.debug.publish("message", DebugMessage{time.Now(), direction, string(line)})
	if direction == "host" {
		h.Log(string(line))
	}
}

// DebugMessage is a line between the host and its agent.
type DebugMessage struct {
	Time      time.Time `json:"time"`
	Direction string    `json:"direction" enum:"in,out,stderr,host" doc:"From the agent, to it, or what is said about it"`
	Text      string    `json:"text"`
}
