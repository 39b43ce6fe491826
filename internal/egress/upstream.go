package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// viaUpstream stands for the address of a host that another proxy looks up. No
// name has it: it is not public, and of a trusted host it means this machine.
var viaUpstream = netip.IPv6Unspecified()

// upstream is the proxy that leads to a trusted host, nil for none.
func (p *Proxy) upstream(t target) *url.URL {
	if p.opt.Upstream == nil {
		return nil
	}
	return p.opt.Upstream(t.host, t.port)
}

// dialUpstream opens a tunnel to a host through the machine's own proxy.
func (p *Proxy) dialUpstream(ctx context.Context, t target) (net.Conn, *refusal) {
	proxy := p.upstream(t)
	if proxy == nil {
		return nil, refuse(http.StatusBadGateway, "%s cannot be reached: the proxy of this machine is gone", t)
	}
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[proxy.Scheme]
	}
	if port == "" {
		port = "80"
	}
	conn, err := p.opt.Dial(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), port))
	if err != nil {
		return nil, refuse(http.StatusBadGateway, "%s cannot be reached: the proxy of this machine (%s) takes no connection", t, proxy.Host)
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if proxy.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
	}
	tunnel, err := openTunnel(conn, proxy, t)
	if err != nil {
		conn.Close()
		return nil, refuse(http.StatusBadGateway, "%s cannot be reached: the proxy of this machine (%s) %s", t, proxy.Host, err)
	}
	_ = conn.SetDeadline(time.Time{})
	return tunnel, nil
}

// tunnelError says what a proxy did in place of opening a tunnel.
type tunnelError string

func (e tunnelError) Error() string { return string(e) }

// openTunnel sends CONNECT and reads the answer.
func openTunnel(conn net.Conn, proxy *url.URL, t target) (net.Conn, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: t.String()}, Host: t.String(), Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		basic := http.Request{Header: http.Header{}}
		basic.SetBasicAuth(user.Username(), password)
		request.Header.Set("Proxy-Authorization", basic.Header.Get("Authorization"))
	}
	if err := request.Write(conn); err != nil {
		return nil, tunnelError("closed the connection")
	}
	in := bufio.NewReaderSize(conn, maxHead)
	response, err := http.ReadResponse(in, request) //nolint:bodyclose // it is the tunnel
	if err != nil {
		return nil, tunnelError("gave no answer that can be read")
	}
	if response.StatusCode != http.StatusOK {
		return nil, tunnelError("refused: " + http.StatusText(response.StatusCode))
	}
	return &bufferedConn{Conn: conn, in: in}, nil
}

// bufferedConn reads what came with the answer of a proxy first.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c *bufferedConn) Read(b []byte) (int, error) { return c.in.Read(b) }
