package egress

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func fetch(b *testing.B, c *http.Client, url string) {
	for b.Loop() {
		response, err := c.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

// BenchmarkRequest is one request of 1 KiB, plain or with TLS, straight to the
// server or through the proxy; fresh means a new connection for each.
func BenchmarkRequest(b *testing.B) {
	body := strings.Repeat("x", 1<<10)
	answer := func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, body) }
	w := newWorld(b, Options{Allow: []string{"example.com"}, Local: interfaceNetworks})
	w.name("example.com", []string{public})
	plain, secure := w.server(public+":80", answer), w.tlsServer(public+":443", answer)
	for name, fresh := range map[string]bool{"kept": false, "fresh": true} {
		for _, c := range []struct {
			name, url string
			client    *http.Client
		}{
			{"plain/direct", plain.URL, &http.Client{Transport: &http.Transport{}}},
			{"plain/proxy", "http://example.com/", w.client()},
			{"tls/direct", secure.URL, secure.Client()},
			{"tls/proxy", "https://example.com/", secureClient(w, secure)},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				transport := c.client.Transport.(*http.Transport).Clone()
				transport.DisableKeepAlives = fresh
				defer transport.CloseIdleConnections()
				fetch(b, &http.Client{Transport: transport}, c.url)
			})
		}
	}
}

// BenchmarkThroughput is bytes through a tunnel that is not TLS.
func BenchmarkThroughput(b *testing.B) {
	w := newWorld(b, Options{Allow: []string{"example.com"}})
	w.name("example.com", []string{public})
	w.raw(public+":9", func(conn net.Conn) {
		piece := make([]byte, 64<<10)
		for {
			if _, err := conn.Write(piece); err != nil {
				return
			}
		}
	})
	conn, in := w.tunnel("example.com:9")
	defer conn.Close()
	piece := make([]byte, 64<<10)
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		if _, err := io.ReadFull(in, piece); err != nil {
			b.Fatal(err)
		}
	}
}
