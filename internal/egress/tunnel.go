package egress

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// What a client is told when its TLS is refused: fatal, access denied.
const tlsAlert = "\x15\x03\x03\x00\x02\x02\x31"

// connect opens a tunnel. It says whether the connection goes on with HTTP
// requests inside the tunnel.
func (s *session) connect(ctx context.Context, e *entry, r *request) bool {
	s.drop()
	up, bad := s.reach(ctx, r)
	if bad != nil {
		return s.refuse(e, r, bad)
	}
	e.change(func(d *Decision) { d.Allowed, d.Address, d.Status = true, up.at.String(), http.StatusOK })
	if _, err := io.WriteString(s.client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		up.drop()
		return false
	}
	switch r.target.port {
	case 443:
		bad = s.openTLS(up, r.target)
	case 80:
		var plain bool
		if plain, bad = s.openHTTP(up, r.target); plain && bad == nil {
			s.tunnel, s.kept = &r.target, up
			return true
		}
	default:
		bad = s.pipe(up, func() *refusal { return s.openAny(up, r.target) })
	}
	if bad == nil && (r.target.port == 443 || r.target.port == 80) {
		bad = s.pipe(up, nil)
	}
	e.change(func(d *Decision) {
		d.BytesUp, d.BytesDown = up.own.up.Load(), up.own.down.Load()
		if bad != nil {
			d.Allowed, d.Reason = false, bad.reason
		}
	})
	up.drop()
	return false
}

// pipe relays both ways until both ends are done. An opening decides about the
// first bytes of the client while the server may already speak.
func (s *session) pipe(up *upstream, opening func() *refusal) *refusal {
	var bad *refusal
	done := make(chan struct{})
	go func() {
		defer close(done)
		if opening != nil {
			if bad = opening(); bad != nil {
				up.Close()
				return
			}
		}
		oneWay(up.link, s.client, s.from())
	}()
	oneWay(s.client, up.link, up.in)
	<-done
	if s.guard != nil && s.guard.bad != nil {
		bad = s.guard.bad
	}
	return bad
}

// from is what the client sends into the tunnel.
func (s *session) from() io.Reader {
	if s.guard != nil {
		return s.guard
	}
	return s.in
}

// openTLS lets a ClientHello for the target through, and nothing else.
func (s *session) openTLS(up *upstream, t target) *refusal {
	s.client.bound(time.Now().Add(s.proxy.opt.HeadTimeout))
	defer s.client.bound(time.Time{})
	raw, message, err := readHello(s.in)
	if errors.Is(err, errNotTLS) {
		return refuse(0, "the connection to %s was cut off: %s", t, err)
	}
	bad := checkHello(message, err, t)
	if bad != nil {
		_, _ = io.WriteString(s.client, tlsAlert)
		return bad
	}
	s.guard = &helloGuard{in: s.in, target: t}
	_, _ = up.Write(raw) // an error comes back from the next read
	return nil
}

// checkHello says what is wrong with a ClientHello for a target.
func checkHello(message []byte, err error, t target) *refusal {
	var h hello
	if err == nil {
		h, err = parseHello(message)
	}
	var what string
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		what = "its TLS ClientHello did not arrive in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		what = "it ended before its TLS ClientHello was whole"
	case err != nil:
		what = err.Error()
	case h.ech:
		what = "its TLS ClientHello is encrypted, so the server name cannot be checked"
	case t.addr.IsValid() && h.named:
		what = "its TLS names a server, although the connection is for an address"
	case t.addr.IsValid():
	case !h.named:
		what = "its TLS names no server"
	case !strings.EqualFold(h.name, t.host):
		what = "its TLS names another server"
		if other, _, err := parseHost(h.name); err == nil {
			what += ", " + other
		}
	}
	if what == "" {
		return nil
	}
	return refuse(0, "the connection to %s was cut off: %s", t, what)
}

// openHTTP decides about a tunnel to port 80: TLS for the target, or requests
// in plain text, which are then handled one by one.
func (s *session) openHTTP(up *upstream, t target) (plain bool, bad *refusal) {
	s.client.bound(time.Now().Add(s.proxy.opt.HeadTimeout))
	defer s.client.bound(time.Time{})
	first, err := s.in.Peek(1)
	if err != nil {
		return false, refuse(0, "the connection to %s was given up: nothing was sent", t)
	}
	if first[0] == recordHandshake {
		return false, s.openTLS(up, t)
	}
	return true, nil
}

// openAny decides about a tunnel to any other port. TLS must be for the target,
// and so must be the first request if it is HTTP; other bytes pass.
func (s *session) openAny(up *upstream, t target) *refusal {
	first, err := s.in.Peek(1)
	if err != nil {
		return nil // it sends nothing, which is its right
	}
	if first[0] == recordHandshake {
		return s.openTLS(up, t)
	}
	s.client.bound(time.Now().Add(s.proxy.opt.HeadTimeout))
	defer s.client.bound(time.Time{})
	plain, err := looksLikeHTTP(s.in)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(0, "the connection to %s was cut off: its first line did not arrive in time", t)
	}
	if err != nil || !plain {
		return nil
	}
	raw, err := readHead(s.in)
	if err != nil {
		return refuse(0, "the connection to %s was cut off: its first request cannot be read", t)
	}
	h, err := parseHead(raw)
	if err != nil {
		return refuse(0, "the connection to %s was cut off: %s", t, err)
	}
	if _, bad := parseRequest(h, &t); bad != nil {
		return refuse(0, "the connection to %s was cut off: %s", t, bad.reason)
	}
	_, _ = io.WriteString(up, raw)
	return nil
}

// looksLikeHTTP says whether a server might take the first line for a request:
// a method, a blank, and later HTTP/. It reads no further than it must, since
// other protocols may wait for an answer to their first bytes.
func looksLikeHTTP(in *bufio.Reader) (bool, error) {
	var line []byte // without blanks before it
	for n := 1; n <= in.Size(); n++ {
		seen, err := in.Peek(n)
		if err != nil {
			return false, err
		}
		c := seen[n-1]
		switch {
		case c == '\n' && len(line) > 0:
			return bytes.Contains(bytes.ToUpper(line), []byte(" HTTP/")), nil
		case c == ' ' || '\t' <= c && c <= '\r':
			if len(line) > 0 {
				line = append(line, ' ')
			}
		case !isTokenByte(c) && bytes.IndexByte(line, ' ') < 0:
			return false, nil
		default:
			line = append(line, c)
		}
	}
	return true, nil
}
