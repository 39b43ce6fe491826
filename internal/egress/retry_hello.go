package egress

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
)

// errSecondHello ends a tunnel whose second ClientHello is for another server;
// the reason is in the guard.
var errSecondHello = errors.New("the second ClientHello is for another server")

// helloGuard reads what follows a ClientHello. A server may ask for a second
// one (HelloRetryRequest), which is in plain text too and is what some servers
// choose the host by; the guard checks it like the first. Everything else
// passes: records of other kinds, and all bytes after the first handshake
// message that is no ClientHello, which only TLS 1.2 sends in the open.
type helloGuard struct {
	in      *bufio.Reader
	target  target
	pending []byte // checked, to be passed on
	left    int    // bytes of a record that passes
	open    bool   // no ClientHello can come any more
	bad     *refusal
}

func (g *helloGuard) Read(b []byte) (int, error) {
	if len(g.pending) == 0 && g.left == 0 && !g.open {
		if err := g.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, g.pending)
	g.pending = g.pending[n:]
	switch {
	case len(g.pending) > 0 || n == len(b) || n > 0 && g.left == 0:
		return n, nil
	case g.left > 0:
		b = b[:min(len(b), n+g.left)]
	}
	more, err := g.in.Read(b[n:])
	if g.left > 0 {
		g.left -= more
		err = unexpected(err)
	}
	return n + more, err
}

// next looks at the following record.
func (g *helloGuard) next() error {
	header, err := g.in.Peek(5)
	if err != nil {
		if len(header) > 0 {
			err = unexpected(err)
		}
		return err
	}
	if header[0] != recordHandshake {
		g.pending = bytes.Clone(header)
		g.left = int(binary.BigEndian.Uint16(header[3:]))
		_, err := g.in.Discard(len(header))
		return err
	}
	g.open = true
	raw, message, err := readHello(g.in)
	g.pending = raw
	if errors.Is(err, errOtherMessage) {
		return nil
	}
	if g.bad = checkHello(message, err, g.target); g.bad != nil {
		g.pending = nil
		return errSecondHello
	}
	return nil
}
