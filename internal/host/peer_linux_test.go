package host

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestAccess_OtherUsers of this machine are refused, whatever they know.
func TestAccess_OtherUsers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	for _, network := range []string{"127.0.0.1", "::1"} {
		r := serve(t, t.TempDir(), func(o *Options) { o.Host = network })
		r.signIn()
		ask := func(uid int) int {
			conn := dialAs(t, uid, r.listener.Addr().String())
			defer conn.Close()
			fmt.Fprintf(conn, "GET /api/state HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nX-Tendril-Token: %s\r\n\r\n",
				strings.TrimPrefix(r.Address(), "http://"), r.access.cookie(), r.token)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.StatusCode
		}
		if got := ask(0); got != 200 {
			t.Errorf("%s: the user is answered %d", network, got)
		}
		if got := ask(65534); got != 403 {
			t.Errorf("%s: another user is answered %d", network, got)
		}
	}
}

// dialAs connects as a user, by an identity that only this thread has: the kernel
// gives a socket to it.
func dialAs(t *testing.T, uid int, address string) net.Conn {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(uid); err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
	if e := syscall.Setfsuid(0); e != nil {
		t.Fatal(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestSocketOwner knows both ends of a connection, and nobody for one that is not.
func TestSocketOwner(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0", "[::]:0"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		client, server := netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(conn.RemoteAddr().String())
		if uid, known := socketOwner(client, server); !known || uid != os.Getuid() {
			t.Errorf("%s: %d %v", address, uid, known)
		}
		if uid, known := socketOwner(netip.AddrPortFrom(client.Addr(), 1), server); known {
			t.Errorf("%s: %d", address, uid)
		}
	}
}
