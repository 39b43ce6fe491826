package host

import (
	"context"
	"net"
	"net/netip"
	"os"
	"sync"
)

type peerKey struct{}

// withPeer lets [isStranger] find out later whose a connection is, if need be.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, sync.OnceValue(func() bool {
		client, err := netip.ParseAddrPort(conn.RemoteAddr().String())
		if err != nil {
			return false
		}
		server, err := netip.ParseAddrPort(conn.LocalAddr().String())
		if err != nil {
			return false
		}
		uid, known := socketOwner(client, server)
		return known && uid != 0 && uid != os.Geteuid()
	}))
}

// isStranger reports whether a request is known to come from another user of
// this machine, who is not root. Where the system does not tell, it is not known.
func isStranger(ctx context.Context) bool {
	stranger, ok := ctx.Value(peerKey{}).(func() bool)
	return ok && stranger()
}
