package egress

import (
	"bufio"
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func secureClient(w *world, server *httptest.Server) *http.Client {
	client := w.client()
	transport := client.Transport.(*http.Transport)
	transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	transport.ForceAttemptHTTP2 = true
	return client
}

func TestTunnel(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"example.com", "203.0.113.5:443"}})
	w.name("example.com", []string{public})
	server := w.tlsServer(public+":443", func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(out, "%s %s %s", r.Proto, r.Host, r.TLS.ServerName)
	})
	client := secureClient(w, server)
	if _, body := get(t, client, "https://example.com/"); body != "HTTP/2.0 example.com example.com" {
		t.Error(body)
	}
	client.CloseIdleConnections()
	d := w.last()
	if !d.Allowed || d.Method != "CONNECT" || d.Host != "example.com" || d.Port != 443 || d.Status != 200 || d.Address != public+":443" || d.BytesUp < 100 || d.BytesDown < 100 || d.Reason != "" {
		t.Errorf("%+v", d)
	}
	client = secureClient(w, server)
	client.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
	if _, body := get(t, client, "https://203.0.113.5/"); body != "HTTP/2.0 203.0.113.5 " {
		t.Error(body)
	}
}

// helloFor returns the bytes that a real client sends first.
func helloFor(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	near, far := net.Pipe()
	defer far.Close()
	var ended sync.WaitGroup
	ended.Go(func() {
		_ = tls.Client(near, config).Handshake()
		near.Close()
	})
	var header [5]byte
	if _, err := io.ReadFull(far, header[:]); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(far, rest); err != nil {
		t.Fatal(err)
	}
	far.Close()
	ended.Wait()
	return append(header[:], rest...)
}

func plainHello(t testing.TB, name string) []byte {
	return helloFor(t, &tls.Config{ServerName: name, InsecureSkipVerify: true})
}

// records cuts the message of a one-record hello into records of so many bytes.
func records(hello []byte, size int) []byte {
	var out []byte
	for message := hello[5:]; len(message) > 0; {
		n := min(size, len(message))
		out = append(out, hello[0], hello[1], hello[2], byte(n>>8), byte(n))
		out = append(out, message[:n]...)
		message = message[n:]
	}
	return out
}

// echConfig is a configuration for encrypted hellos with this outer name.
func echConfig(t testing.TB, outer string) []byte {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := key.PublicKey().Bytes()
	var c []byte
	c = append(c, 7, 0, 0x20, 0, byte(len(public)))
	c = append(c, public...)
	c = append(c, 0, 4, 0, 1, 0, 1, 32, byte(len(outer)))
	c = append(c, outer...)
	c = append(c, 0, 0)
	c = append([]byte{0xfe, 0x0d, byte(len(c) >> 8), byte(len(c))}, c...)
	return append([]byte{byte(len(c) >> 8), byte(len(c))}, c...)
}

// sink is a server that keeps what arrives, one text per connection.
type sink chan []byte

func (s sink) serve(conn net.Conn) {
	all, _ := io.ReadAll(conn)
	s <- all
}

// trial sends bytes into a tunnel, in pieces of so many bytes, and returns what
// the server got and the decision.
func trial(w *world, s sink, to string, sent []byte, piece int) ([]byte, Decision) {
	w.t.Helper()
	conn, _ := w.tunnel(to)
	_ = conn.(*net.TCPConn).SetNoDelay(true)
	for rest := sent; len(rest) > 0; {
		n := min(piece, len(rest))
		if _, err := conn.Write(rest[:n]); err != nil {
			break
		}
		rest = rest[n:]
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
	conn.Close()
	d := w.last()
	return <-s, d
}

func TestServerName(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"allowed.test", "203.0.113.5"}, HeadTimeout: 5 * time.Second})
	w.name("allowed.test", []string{public})
	s := make(sink, 1)
	for _, port := range []string{"443", "80", "8443"} {
		w.raw(public+":"+port, s.serve)
	}
	right, wrong := plainHello(t, "allowed.test"), plainHello(t, "evil.test")
	none := plainHello(t, "203.0.113.5")
	ech := helloFor(t, &tls.Config{ServerName: "evil.test", MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfig(t, "allowed.test")})
	old := helloFor(t, &tls.Config{ServerName: "allowed.test", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS12})
	double := append(bytes.Clone(right), wrong...)
	for _, port := range []string{"443", "80", "8443"} {
		for _, c := range []struct {
			what, host string
			sent       []byte
			want       string // empty: it passes
		}{
			{"the right name", "allowed.test", right, ""},
			{"TLS 1.2", "allowed.test", old, ""},
			{"upper case", "allowed.test", plainHello(t, "ALLOWED.test"), ""},
			{"many records", "allowed.test", records(right, 7), ""},
			{"data behind it", "allowed.test", append(bytes.Clone(right), 23, 3, 3, 0, 2, 1, 2), ""},
			{"an address", "203.0.113.5", none, ""},
			{"another name", "allowed.test", wrong, "names another server, evil.test"},
			{"another name in many records", "allowed.test", records(wrong, 5), "names another server"},
			{"a second hello", "allowed.test", double, "names another server"},
			{"no name", "allowed.test", none, "names no server"},
			{"a name for an address", "203.0.113.5", right, "although the connection is for an address"},
			{"encrypted", "allowed.test", ech, "is encrypted"},
			{"half of it", "allowed.test", right[:50], "before its TLS ClientHello was whole"},
			{"a byte behind it in the record", "allowed.test", withByte(right), "malformed"},
			{"too long", "allowed.test", long(right), "longer than 64 KiB"},
			{"no hello", "allowed.test", []byte{22, 3, 1, 0, 5, 2, 0, 0, 1, 0}, "does not begin with a ClientHello"},
			{"an empty record", "allowed.test", []byte{22, 3, 1, 0, 0}, "not TLS"},
		} {
			for _, piece := range []int{1 << 20, 1} {
				what := fmt.Sprintf("%s to %s in pieces of %d", c.what, port, piece)
				got, d := trial(w, s, c.host+":"+port, c.sent, piece)
				if c.want == "" {
					if !d.Allowed || !bytes.Equal(got, c.sent) {
						t.Errorf("%s: %+v, the server got %d bytes", what, d, len(got))
					}
					continue
				}
				if d.Allowed || !strings.Contains(d.Reason, c.want) {
					t.Errorf("%s: %+v", what, d)
				}
				if len(got) > 0 && !bytes.Equal(got, right) { // of a second hello the first one arrives
					t.Errorf("%s: the server got %q", what, got)
				}
			}
		}
	}
}

// long makes a hello too long by its session tickets; it stays well formed.
func long(hello []byte) []byte {
	message := bytes.Clone(hello[5:])
	message = append(message, make([]byte, 70<<10)...)
	n := len(message) - 4
	message[1], message[2], message[3] = byte(n>>16), byte(n>>8), byte(n)
	return records(append(bytes.Clone(hello[:5]), message...), 1<<14)
}

func withByte(hello []byte) []byte {
	out := append(bytes.Clone(hello), 0)
	binary.BigEndian.PutUint16(out[3:], binary.BigEndian.Uint16(out[3:])+1)
	return out
}

func TestOtherBytesInTunnel(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"allowed.test"}})
	w.name("allowed.test", []string{public})
	s := make(sink, 1)
	for _, port := range []string{"443", "80", "6379"} {
		w.raw(public+":"+port, s.serve)
	}
	right := "GET /x HTTP/1.1\r\nHost: allowed.test:6379\r\n\r\n"
	for _, c := range []struct{ port, sent, want string }{
		{"443", "GET /plain HTTP/1.0\r\nHost: evil.test\r\n\r\n", "not TLS"},
		{"443", "\x80\x2e\x01\x03\x01", "not TLS"},
		{"443", "SSH-2.0-x\r\n", "not TLS"},
		{"6379", "PING\r\n", ""},
		{"6379", "*1\r\n$4\r\nPING\r\n", ""},
		{"6379", "get a\r\n", ""},
		{"6379", "AMQP\x00\x00\x09\x01", ""},
		{"6379", "\x00\x00\x00\x08\x04\xd2\x16\x2f", ""},
		{"6379", right, ""},
		{"6379", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "Host header names evil.test:80"},
		{"6379", "\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "cut off"},
		{"6379", " GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "cut off"},
		{"6379", "GET\t/\tHTTP/1.1\r\nHost: evil.test\r\n\r\n", "cut off"},
		{"6379", "get / http/1.1\nHost: evil.test\n\n", "cut off"},
		{"6379", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "cut off"},
		{"6379", "GET /" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: evil.test\r\n\r\n", "cut off"},
	} {
		for _, piece := range []int{1 << 20, 1} {
			got, d := trial(w, s, "allowed.test:"+c.port, []byte(c.sent), piece)
			if c.want == "" && (!d.Allowed || string(got) != c.sent) || c.want != "" && (d.Allowed || len(got) > 0 || !strings.Contains(d.Reason, c.want)) {
				t.Errorf("%.50q to %s: %+v, the server got %.50q", c.sent, c.port, d, got)
			}
		}
	}
}

// In a tunnel to port 80 each request is checked, not only the first.
func TestHTTPInTunnel(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"allowed.test"}})
	w.name("allowed.test", []string{public})
	w.server(public+":80", hello200)
	conn, in := w.tunnel("allowed.test:80")
	for _, c := range []struct{ request, want string }{
		{"GET /1 HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "hello allowed.test/1"},
		{"POST /2 HTTP/1.1\r\nHost: allowed.test:80\r\nContent-Length: 1\r\n\r\nx", "hello allowed.test/2"},
		{"GET /3 HTTP/1.1\r\nHost: evil.test\r\n\r\n", "tendril: the Host header names evil.test:80, but the request is for allowed.test:80\n"},
	} {
		io.WriteString(conn, c.request)
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(response.Body); string(body) != c.want {
			t.Errorf("%q", body)
		}
	}
	equal(t, "dials", w.dials(), []string{public + ":80", public + ":80"})
	for _, request := range []string{
		"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "SSH-2.0-x\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
	} {
		conn, in := w.tunnel("allowed.test:80")
		io.WriteString(conn, request)
		if response, err := http.ReadResponse(in, nil); err != nil || response.StatusCode != 400 {
			t.Errorf("%q: %v %v", request, response, err)
		}
		conn.Close()
	}
}

// The server speaks first, each side closes its half in turn.
func TestHalfClose(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"mail.test"}})
	w.name("mail.test", []string{public})
	w.raw(public+":2525", func(conn net.Conn) {
		io.WriteString(conn, "220 ready\r\n")
		all, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "got %d", len(all))
	})
	conn, in := w.tunnel("mail.test:2525")
	if line, _ := in.ReadString('\n'); line != "220 ready\r\n" {
		t.Fatal(line)
	}
	io.WriteString(conn, "EHLO x\r\n")
	_ = conn.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(in); string(rest) != "got 8" || err != nil {
		t.Errorf("%q %v", rest, err)
	}

	w.raw(public+":2526", func(conn net.Conn) {
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	})
	conn, in = w.tunnel("mail.test:2526")
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
	io.WriteString(conn, "still\n")
	conn.Close()
	if d := w.last(); !d.Allowed || d.BytesUp != 6 {
		t.Errorf("%+v", d)
	}
}

func TestTunnelIdle(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}, IdleTimeout: 100 * time.Millisecond, HeadTimeout: 100 * time.Millisecond})
	w.name("a.test", []string{public})
	ended := make(chan bool, 3)
	for _, port := range []string{"443", "80", "5432"} {
		w.raw(public+":"+port, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn); ended <- true })
	}
	for _, port := range []string{"443", "80", "5432"} {
		_, in := w.tunnel("a.test:" + port)
		if rest, err := io.ReadAll(in); err != nil {
			t.Errorf("%q %v", rest, err)
		}
		<-ended
	}
}

func webSocketServer(out http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, in, err := out.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\nfirst", base64.StdEncoding.EncodeToString(sum[:]))
	_, _ = io.Copy(conn, in)
}

func TestWebSocket(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	w.name("a.test", []string{public})
	w.server(public+":80", webSocketServer)
	w.server(public+":8080", webSocketServer)
	const head = " HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for what, open := range map[string]func() (net.Conn, *bufio.Reader){
		"plain": func() (net.Conn, *bufio.Reader) {
			conn := w.conn()
			io.WriteString(conn, "GET http://a.test/ws"+head+"Host: a.test\r\n\r\n")
			return conn, bufio.NewReader(conn)
		},
		"ws scheme": func() (net.Conn, *bufio.Reader) {
			conn := w.conn()
			io.WriteString(conn, "GET ws://a.test:8080/ws"+head+"Host: a.test:8080\r\n\r\n")
			return conn, bufio.NewReader(conn)
		},
		"tunnel": func() (net.Conn, *bufio.Reader) {
			conn, in := w.tunnel("a.test:80")
			io.WriteString(conn, "GET /ws"+head+"Host: a.test\r\n\r\n")
			return conn, in
		},
		"tunnel to another port": func() (net.Conn, *bufio.Reader) {
			conn, in := w.tunnel("a.test:8080")
			io.WriteString(conn, "GET /ws"+head+"Host: a.test:8080\r\n\r\n")
			return conn, in
		},
	} {
		conn, in := open()
		response, err := http.ReadResponse(in, nil)
		if err != nil || response.StatusCode != 101 || response.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" || response.Header.Get("Upgrade") == "" {
			t.Fatalf("%s: %+v %v", what, response, err)
		}
		for _, frame := range []string{"first", "second", "third"} {
			if frame != "first" {
				io.WriteString(conn, frame)
			}
			got := make([]byte, len(frame))
			if _, err := io.ReadFull(in, got); err != nil || string(got) != frame {
				t.Errorf("%s: %q %v", what, got, err)
			}
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
			t.Errorf("%s: %q %v", what, rest, err)
		}
		conn.Close()
	}
	for _, d := range w.proxy.Decisions() {
		if !d.Allowed {
			t.Errorf("%+v", d)
		}
	}
	answer := w.say("GET http://a.test/ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n")
	if strings.HasPrefix(answer, "HTTP/1.1 101") {
		t.Error("the server changed to h2c")
	}
}

// A real handshake in which the server asks for a second hello works.
func TestHelloRetry(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"example.com"}})
	w.name("example.com", []string{public})
	server := httptest.NewUnstartedServer(http.HandlerFunc(hello200))
	server.TLS = &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	w.servers[public+":443"] = server.Listener.Addr().String()
	client := secureClient(w, server)
	retried := false
	client.Transport.(*http.Transport).TLSClientConfig.VerifyConnection = func(state tls.ConnectionState) error {
		retried = state.HelloRetryRequest
		return nil
	}
	if status, body := get(t, client, "https://example.com/"); status != 200 || !retried {
		t.Error(status, body, retried)
	}
}

func TestOldTLS(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"example.com"}})
	w.name("example.com", []string{public})
	server := w.tlsServer(public+":443", hello200)
	cache := tls.NewLRUClientSessionCache(4)
	for range 20 {
		client := secureClient(w, server)
		config := client.Transport.(*http.Transport).TLSClientConfig
		config.MaxVersion = tls.VersionTLS12
		config.ClientSessionCache = cache
		if status, body := get(t, client, "https://example.com/"); status != 200 {
			t.Error(status, body)
		}
		client.CloseIdleConnections()
	}
}
