package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"
)

// session is one connection of the capability.
type session struct {
	proxy  *Proxy
	client *link
	in     *bufio.Reader // reads client
	tunnel *target       // set while the requests come through a CONNECT
	guard  *helloGuard   // set once TLS goes through the tunnel
	kept   *upstream     // connection for the next request to the same address
}

// upstream is a connection to a server.
type upstream struct {
	*link
	in       *bufio.Reader // reads link, within headLeft
	at       netip.AddrPort
	used     bool        // an exchange took place on it
	headLeft int         // bytes that may be read ahead; -1: any number
	release  func() bool // lets go of the context
}

func (s *session) newUpstream(ctx context.Context, conn net.Conn, at netip.AddrPort) *upstream {
	up := &upstream{link: newLink(conn, s.proxy.opt.IdleTimeout, s.client.active, &s.proxy.total), at: at, headLeft: -1}
	up.in = bufio.NewReader(up)
	up.release = context.AfterFunc(ctx, func() { conn.Close() })
	return up
}

func (u *upstream) Read(b []byte) (int, error) {
	if u.headLeft == 0 {
		return 0, errHeadSize
	}
	if u.headLeft > 0 && len(b) > u.headLeft {
		b = b[:u.headLeft]
	}
	n, err := u.link.Read(b)
	if u.headLeft > 0 {
		u.headLeft -= n
	}
	return n, err
}

func (u *upstream) drop() {
	u.release()
	u.Close()
}

func (s *session) drop() {
	if s.kept != nil {
		s.kept.drop()
		s.kept = nil
	}
}

// next handles one request and says whether another may follow.
func (s *session) next(ctx context.Context) bool {
	s.client.bound(time.Time{})
	if _, err := s.in.Peek(1); err != nil {
		return false
	}
	s.client.bound(time.Now().Add(s.proxy.opt.HeadTimeout))
	r, bad := s.readRequest()
	if r == nil {
		return false
	}
	s.client.bound(time.Time{})
	e := s.proxy.log.begin(r.target.host, r.target.port, r.method)
	defer e.end()
	switch {
	case bad != nil:
		r.close = true
		return s.refuse(e, r, bad)
	case r.method == http.MethodConnect:
		return s.connect(ctx, e, r)
	}
	return s.forward(ctx, e, r)
}

// readRequest returns no request when the client is gone.
func (s *session) readRequest() (*request, *refusal) {
	raw, err := readHead(s.in)
	var h head
	if err == nil {
		h, err = parseHead(raw)
	}
	switch {
	case err == nil:
		return parseRequest(h, s.tunnel)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &request{}, refuse(http.StatusRequestTimeout, "the head of the request did not arrive in time")
	case isHeadError(err):
		return &request{}, refuse(http.StatusBadRequest, "%s", err)
	}
	return nil, nil
}

func isHeadError(err error) bool {
	return slices.Contains([]error{errHeadSize, errHeadLine, errHeadForm, errField, errURLSize}, err)
}

// refuse answers a request in plain words. Whether the connection goes on
// depends on the request: what may follow an unread body is not looked for.
func (s *session) refuse(e *entry, r *request, bad *refusal) bool {
	e.change(func(d *Decision) { d.Reason, d.Status = bad.reason, bad.status })
	body := "tendril: " + bad.reason + "\n"
	last := r.close || r.length != 0 || r.method == http.MethodConnect
	answer := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nCache-Control: no-store\r\nX-Tendril-Refused: 1\r\n",
		bad.status, http.StatusText(bad.status), len(body))
	if last {
		answer += "Connection: close\r\n"
	}
	answer += "\r\n"
	if r.method != http.MethodHead {
		answer += body
	}
	_, err := s.client.Write([]byte(answer))
	return err == nil && !last
}

// reach vets a target and connects to it, or takes the kept connection when it
// leads to a vetted address and reuse allows it.
func (s *session) reach(ctx context.Context, r *request) (up *upstream, bad *refusal) {
	limited, cancel := context.WithTimeout(ctx, s.proxy.opt.DialTimeout)
	defer cancel()
	vetted, bad := s.proxy.route(limited, r.target)
	if bad != nil {
		return nil, bad
	}
	if up := s.takeKept(r, vetted); up != nil {
		return up, nil
	}
	conn, at, bad := s.proxy.dial(limited, r.target, vetted)
	if bad != nil {
		return nil, bad
	}
	return s.newUpstream(ctx, conn, at), nil
}

// takeKept returns the kept connection if it serves the request. One that was
// used may be closed by the server at any time, so it is only for requests that
// can be sent again.
func (s *session) takeKept(r *request, vetted []netip.Addr) *upstream {
	up := s.kept
	if up == nil {
		return nil
	}
	s.kept = nil
	if up.at.Port() != r.target.port || !slices.Contains(vetted, up.at.Addr()) || up.used && !r.idempotent() {
		up.drop()
		return nil
	}
	return up
}
