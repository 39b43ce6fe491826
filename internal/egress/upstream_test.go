package egress

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// A host that a person has configured may be at a private address; the same
// address is closed to a host that was only granted.
func TestTrusted_MayBePrivate(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"registry.lan:80", "sly.example.com"}, Trusted: []string{"registry.lan:80"}})
	w.name("registry.lan", []string{"10.0.0.9"})
	w.name("sly.example.com", []string{"10.0.0.9"})
	w.server("10.0.0.9:80", func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, "private") })
	for host, want := range map[string]int{"registry.lan": 200, "sly.example.com": 403} {
		response, body := fetchVia(t, w, "http://"+host+"/")
		if response.StatusCode != want || want == 200 && body != "private" {
			t.Errorf("%s: %d %s", host, response.StatusCode, body)
		}
	}
	if response, _ := fetchVia(t, w, "http://registry.lan:81/"); response.StatusCode != 403 {
		t.Errorf("another port: %d", response.StatusCode)
	}
}

func fetchVia(t *testing.T, w *world, address string) (*http.Response, string) {
	t.Helper()
	proxy := &url.URL{Scheme: "http", Host: w.addr}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// The proxy of this machine leads to trusted hosts, which it looks up itself, and
// to no others.
func TestUpstream(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(out, "from "+r.Host) }))
	defer target.Close()
	var tunnels, refused atomic.Int32
	machine := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
		if r.Method != http.MethodConnect || r.Host != "registry.corp:8080" || user != "me" || password != "pw" {
			refused.Add(1)
			http.Error(out, "no", http.StatusProxyAuthRequired)
			return
		}
		tunnels.Add(1)
		out.WriteHeader(http.StatusOK)
		conn, buffered, err := http.NewResponseController(out).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		up, err := net.Dial("tcp", target.Listener.Addr().String())
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(up, buffered) }()
		_, _ = io.Copy(conn, up)
	}))
	defer machine.Close()
	address, _ := url.Parse(machine.URL)
	address.User = url.UserPassword("me", "pw")
	w := newWorld(t, Options{
		Allow: []string{"registry.corp:8080", "other.corp:8080", "api.example.com"}, Trusted: []string{"registry.corp:8080", "other.corp:8080"},
		Upstream: func(string, uint16) *url.URL { return address },
	})
	w.servers[address.Host] = address.Host
	if response, body := fetchVia(t, w, "http://registry.corp:8080/x"); response.StatusCode != 200 || body != "from registry.corp:8080" {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	if response, body := fetchVia(t, w, "http://other.corp:8080/"); response.StatusCode != 502 || !strings.Contains(body, "proxy of this machine") || strings.Contains(body, "pw") {
		t.Errorf("refused by it: %d %s", response.StatusCode, body)
	}
	if response, _ := fetchVia(t, w, "http://api.example.com/"); response.StatusCode != 502 {
		t.Errorf("not trusted: %d", response.StatusCode)
	}
	if tunnels.Load() != 1 || refused.Load() != 1 {
		t.Errorf("%d tunnels, %d refused", tunnels.Load(), refused.Load())
	}
}
