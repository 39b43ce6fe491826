// Package egress is the only way out of a capability's network namespace: an
// HTTP proxy that connects to the hosts of one grant and to nothing else.
//
// It takes plain requests in absolute form and CONNECT, as HTTP/1.1 or 1.0.
// Each request is decided on its own: the host and the port must be granted,
// the name is looked up once, every answer must be a public address, and what
// is dialed is one of those very addresses. TLS stays end to end: of a tunnel
// only the ClientHello is read, whose server name must be the host of the
// CONNECT. A tunnel to port 80 may hold nothing but HTTP, and each request in
// it is checked like a plain one.
//
// What it cannot see: the Host header inside TLS (domain fronting by a host
// that was granted), and what follows the first bytes of a tunnel to a port
// other than 80 and 443.
//
// A proxy that the machine itself needs (HTTPS_PROXY) would do the lookups, so
// that nobody could vet the addresses: it is used for hosts that a person has
// configured, such as a registry of modules, and for no others.
package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Resolver looks a name up. The name ends in a dot, so that no search domain
// applies to it. [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options says what a [Proxy] lets through and how. Zero values stand for the
// defaults.
type Options struct {
	// Allow lists what was granted: host, host:port, *.host (the host itself and
	// any deeper name), * (any public host), an IPv4 address, or an IPv6 address
	// in brackets, each with or without a port. An entry without a port grants
	// every port, as Deno's --allow-net does. An address that is not public is
	// reached only when it is listed here and asked for as that very address,
	// never through a name or *.
	Allow []string

	// Trusted lists entries of Allow, as there, that a person has configured:
	// their names may have addresses that are not public.
	Trusted []string
	// Upstream returns the HTTP proxy that this machine needs to reach a trusted
	// host, which then looks the name up; nil is none.
	Upstream func(host string, port uint16) *url.URL

	Resolver Resolver // default: net.DefaultResolver
	// Dial connects to an address "ip:port" that was vetted; default: a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Local returns the networks this machine is directly part of, which count
	// as private whatever their numbers; default: those of its interfaces.
	Local func() ([]netip.Prefix, error)
	Now   func() time.Time // for the times of decisions; default: time.Now

	HeadTimeout time.Duration // for the head of a request and for a ClientHello; default: 10 s
	DialTimeout time.Duration // for a lookup and the connection together; default: 15 s
	IdleTimeout time.Duration // without a byte in either direction; default: 5 min
	MaxConns    int           // connections of the capability at once, more wait; default: 64
}

// Proxy decides and forwards. It may serve several listeners.
type Proxy struct {
	opt   Options
	grant grant
	// trusted is the part of the grant that a person has configured.
	trusted grant
	log     journal
	total   meter
	slots   chan struct{}
}

// meter counts bytes to (up) and from (down) servers.
type meter struct{ up, down atomic.Int64 }

// New makes a proxy. The error names the entry of Allow that is malformed.
func New(opt Options) (*Proxy, error) {
	granted, err := parseGrant(opt.Allow)
	if err != nil {
		return nil, err
	}
	trusted, err := parseGrant(opt.Trusted)
	if err != nil {
		return nil, err
	}
	if opt.Resolver == nil {
		opt.Resolver = net.DefaultResolver
	}
	if opt.Dial == nil {
		opt.Dial = new(net.Dialer).DialContext
	}
	if opt.Local == nil {
		opt.Local = interfaceNetworks
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	orDefault(&opt.HeadTimeout, 10*time.Second)
	orDefault(&opt.DialTimeout, 15*time.Second)
	orDefault(&opt.IdleTimeout, 5*time.Minute)
	if opt.MaxConns <= 0 {
		opt.MaxConns = 64
	}
	return &Proxy{opt: opt, grant: granted, trusted: trusted, log: journal{now: opt.Now}, slots: make(chan struct{}, opt.MaxConns)}, nil
}

func orDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Serve takes connections from the listener until ctx is done, and returns nil
// then. Before it returns the listener and every connection are closed and
// every goroutine has ended. An error is the listener's.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer cancel()
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := listener.Accept()
		if err != nil {
			<-p.slots
			if ctx.Err() != nil {
				return nil
			}
			if retry(ctx, err) {
				continue
			}
			return fmt.Errorf("accept a connection of the capability: %w", err)
		}
		sessions.Go(func() {
			defer func() { <-p.slots }()
			p.serve(ctx, conn)
		})
	}
}

// retry waits after an error of accept that passes, such as too many open
// files or a client that was gone at once.
func retry(ctx context.Context, err error) bool {
	if errors.Is(err, net.ErrClosed) || !isTemporary(err) {
		return false
	}
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
	return true
}

func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// serve handles one connection to its end.
func (p *Proxy) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	active := new(atomic.Int64)
	client := newLink(conn, p.opt.IdleTimeout, active, nil)
	s := &session{proxy: p, client: client, in: bufio.NewReader(client)}
	for s.next(ctx) {
	}
	s.drop()
	client.linger()
}

// Bytes returns how many bytes went to servers and came from them so far.
func (p *Proxy) Bytes() (up, down int64) { return p.total.up.Load(), p.total.down.Load() }

// Decisions returns the first 1,000 decisions, and after them the first one about
// each host and port that was new, while fewer than 1,000 of these are known, in
// the order in which they were asked for. One whose exchange goes on has no
// Duration yet.
func (p *Proxy) Decisions() []Decision { return p.log.all() }

// Unlisted returns how many decisions by host are not among [Proxy.Decisions].
// Hosts after the first 1,000 of these are counted under the empty name.
func (p *Proxy) Unlisted() map[string]int { return p.log.unlisted() }
