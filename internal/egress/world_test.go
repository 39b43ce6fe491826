package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a proxy with an internet of its own: names, and loopback servers
// that stand for public addresses.
type world struct {
	t     testing.TB
	proxy *Proxy
	addr  string // of the proxy

	mu      sync.Mutex
	names   map[string][][]string // answers, one set per lookup; the last one stays
	lookups []string
	servers map[string]string // "ip:port" to where it really listens
	dialed  []string
}

func newWorld(t testing.TB, opt Options) *world {
	t.Helper()
	w := &world{t: t, names: map[string][][]string{}, servers: map[string]string{}}
	opt.Resolver = w
	opt.Dial = w.dial
	if opt.Local == nil {
		opt.Local = func() ([]netip.Prefix, error) { return nil, nil }
	}
	proxy, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	w.proxy = proxy
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- proxy.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return w
}

func (w *world) name(name string, answers ...[]string) { w.names[name+"."] = answers }

func (w *world) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups = append(w.lookups, host)
	answers := w.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		w.names[host] = answers[1:]
	}
	var addrs []netip.Addr
	for _, text := range answers[0] {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, address)
	to := w.servers[address]
	w.mu.Unlock()
	if to == "" {
		return nil, errors.New("connection refused")
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

// dials returns the addresses that were dialed since the last call.
func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.dialed
	w.dialed = nil
	return all
}

// server puts a handler at a public address.
func (w *world) server(at string, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(handler)
	w.t.Cleanup(server.Close)
	w.servers[at] = server.Listener.Addr().String()
	return server
}

func (w *world) tlsServer(at string, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	w.t.Cleanup(server.Close)
	w.servers[at] = server.Listener.Addr().String()
	return server
}

// raw puts a function at a public address that gets each connection.
func (w *world) raw(at string, serve func(net.Conn)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	w.t.Cleanup(func() { listener.Close(); running.Wait() })
	w.servers[at] = listener.Addr().String()
}

// client is an ordinary HTTP client that uses the proxy.
func (w *world) client() *http.Client {
	transport := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr}),
		DisableCompression: true,
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// conn is a raw connection to the proxy.
func (w *world) conn() net.Conn {
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

// say sends bytes and returns all that comes back until the proxy closes.
func (w *world) say(text string) string {
	conn := w.conn()
	_, _ = io.WriteString(conn, text)
	all, _ := io.ReadAll(conn)
	conn.Close()
	return string(all)
}

// tunnel opens a CONNECT.
func (w *world) tunnel(to string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	conn := w.conn()
	_, _ = io.WriteString(conn, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n")
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil || response.StatusCode != http.StatusOK {
		w.t.Fatalf("CONNECT %s: %v %v", to, response, err)
	}
	return conn, in
}

// last waits for a decision to be complete and returns it.
func (w *world) last() Decision {
	w.t.Helper()
	for range 500 {
		all := w.proxy.Decisions()
		if len(all) > 0 && all[len(all)-1].Duration > 0 {
			return all[len(all)-1]
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatalf("no decision is complete: %+v", w.proxy.Decisions())
	return Decision{}
}

func (w *world) reached() bool { return len(w.dials()) > 0 }

func equal[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func contains(t testing.TB, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s: %q does not contain %q", what, text, part)
	}
}
