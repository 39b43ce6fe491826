package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// fuzzNet resolves everything and connects nowhere; it notes what is dialed.
type fuzzNet struct{ dialed []string }

func (*fuzzNet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == "a.test." {
		return []netip.Addr{netip.MustParseAddr(public)}, nil
	}
	return []netip.Addr{netip.MustParseAddr("203.0.113.66")}, nil
}

func (f *fuzzNet) dial(_ context.Context, _, address string) (net.Conn, error) {
	f.dialed = append(f.dialed, address)
	near, far := net.Pipe()
	go func() {
		in := bufio.NewReader(far)
		_ = far.SetDeadline(time.Now().Add(50 * time.Millisecond))
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			if line == "\r\n" {
				_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}
		far.Close()
	}()
	return near, nil
}

// Whatever a client sends, nothing outside the grant is dialed, and what is
// sent to the server names the granted host.
func FuzzRequest(f *testing.F) {
	for _, request := range smuggled {
		if len(request) < 1<<10 {
			f.Add([]byte(request))
		}
	}
	for _, request := range []string{
		"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: 1\r\n\r\n",
		"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"CONNECT a.test:99 HTTP/1.1\r\n\r\nPING\r\n",
	} {
		f.Add([]byte(request))
	}
	f.Add(append([]byte("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"), plainHello(f, "a.test")...))
	f.Fuzz(func(t *testing.T, sent []byte) {
		internet := &fuzzNet{}
		proxy, err := New(Options{
			Allow: []string{"a.test"}, Resolver: internet, Dial: internet.dial,
			Local:       func() ([]netip.Prefix, error) { return nil, nil },
			HeadTimeout: 20 * time.Millisecond, IdleTimeout: 50 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		go func() {
			go func() { _, _ = near.Write(sent); time.Sleep(20 * time.Millisecond); near.Close() }()
			_, _ = io.Copy(io.Discard, near)
		}()
		proxy.serve(context.Background(), far)
		for _, address := range internet.dialed {
			if !strings.HasPrefix(address, public+":") {
				t.Errorf("%q led to %s", sent, address)
			}
		}
		for _, d := range proxy.Decisions() {
			if d.Allowed && d.Host != "a.test" {
				t.Errorf("%q led to %+v", sent, d)
			}
		}
	})
}

// A hello that is let through names the same server for crypto/tls.
func FuzzClientHello(f *testing.F) {
	for _, hello := range [][]byte{
		plainHello(f, "a.test"), plainHello(f, "203.0.113.5"), records(plainHello(f, "a.test"), 100),
		helloFor(f, &tls.Config{ServerName: "a.test", MaxVersion: tls.VersionTLS12}),
		helloFor(f, &tls.Config{ServerName: "b.test", MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfig(f, "a.test")}),
	} {
		f.Add(hello)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		passed, message, err := readHello(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		if !bytes.HasPrefix(raw, passed) {
			t.Fatal("other bytes are passed on than were sent")
		}
		h, err := parseHello(message)
		if err != nil {
			return
		}
		if name, ok := peer(passed); ok && name != h.name {
			t.Errorf("we read %q, crypto/tls %q", h.name, name)
		}
	})
}

// peer is the server name that crypto/tls reads, if it takes the hello.
func peer(hello []byte) (name string, ok bool) {
	server := tls.Server(&replay{in: bytes.NewReader(hello)}, &tls.Config{
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			name, ok = info.ServerName, true
			return nil, errors.New("seen enough")
		},
	})
	_ = server.Handshake()
	return name, ok
}

// replay is a connection that only has something to read.
type replay struct {
	net.Conn
	in io.Reader
}

func (r *replay) Read(b []byte) (int, error)     { return r.in.Read(b) }
func (*replay) Write(b []byte) (int, error)      { return len(b), nil }
func (*replay) Close() error                     { return nil }
func (*replay) SetDeadline(time.Time) error      { return nil }
func (*replay) SetWriteDeadline(time.Time) error { return nil }
func (*replay) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

func TestRealHellosAgree(t *testing.T) {
	for _, name := range []string{"a.test", "www.a-b.example", ""} {
		config := &tls.Config{ServerName: name, InsecureSkipVerify: true}
		hello := helloFor(t, config)
		_, message, err := readHello(bufio.NewReader(bytes.NewReader(hello)))
		if err != nil {
			t.Fatal(err)
		}
		h, err := parseHello(message)
		if got, ok := peer(hello); err != nil || !ok || got != h.name || h.name != name || h.named != (name != "") || h.ech {
			t.Errorf("%q: %+v %v %q %v", name, h, err, got, ok)
		}
	}
}

func FuzzHost(f *testing.F) {
	for _, seed := range []string{"a.test:80", "[::1]:3000", "127.1", "0x7f.1", "a%2eb", "u@h:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to, err := parseAuthority(text, 80)
		if err != nil {
			return
		}
		again, err := parseAuthority(to.String(), 0)
		if err != nil || again != to {
			t.Errorf("%q is %v, which is read as %v: %v", text, to, again, err)
		}
		if strings.ContainsAny(to.host, " /@\\%\x00*[]") {
			t.Errorf("%q gives the host %q", text, to.host)
		}
	})
}
