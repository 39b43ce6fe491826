package model_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// tunnel is a proxy that leads every CONNECT to one server and records it.
type tunnel struct {
	to   string
	mu   sync.Mutex
	seen []string // host and credentials
}

func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer far.Close()
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	fmt.Fprint(near, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(far, near)
		far.Close()
	}()
	_, _ = io.Copy(near, far)
}

func (p *tunnel) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

// TestNetwork runs this test in processes of their own, because Go reads proxies
// and certificates from the environment once.
func TestNetwork(t *testing.T) {
	if os.Getenv("MODEL_TEST_NETWORK") != "" {
		behindProxy(t)
		return
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(answerAny))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	proxy := &tunnel{to: server.Listener.Addr().String()}
	front := httptest.NewServer(proxy)
	defer front.Close()
	known := certificateFile(t, server.Certificate())
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, variable, file, says string }{
		{"SSL_CERT_FILE", "SSL_CERT_FILE", known, ""},
		{"NODE_EXTRA_CA_CERTS", "NODE_EXTRA_CA_CERTS", known, ""},
		{"unknown authority", "X", "", "certificate was refused"},
		{"no file", "NODE_EXTRA_CA_CERTS", empty + "x", "NODE_EXTRA_CA_CERTS names cannot be read"},
		{"no certificate", "NODE_EXTRA_CA_CERTS", empty, "NODE_EXTRA_CA_CERTS names holds no certificate"},
		{"no system file", "SSL_CERT_FILE", empty + "x", "SSL_CERT_FILE names cannot be read"},
		{"no system certificate", "SSL_CERT_FILE", empty, "SSL_CERT_FILE names holds no certificate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestNetwork$", "-test.v")
			address := strings.Replace(front.URL, "http://", "http://user:hunter2@", 1)
			cmd.Env = append(os.Environ(), "MODEL_TEST_NETWORK="+server.URL, "MODEL_TEST_SAYS="+tt.says, "MODEL_TEST_FILE="+tt.variable+"="+tt.file,
				"HTTPS_PROXY="+address, "https_proxy=", "HTTP_PROXY=", "http_proxy=", "NO_PROXY=direct.invalid", "no_proxy=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			all := proxy.take()
			if len(all) < len(dialects) && !strings.Contains(tt.says, "names") {
				t.Errorf("the proxy got %q", all)
			}
			for _, seen := range all {
				if seen != "CONNECT models.example.com:443 Basic dXNlcjpodW50ZXIy" {
					t.Errorf("the proxy got %s", seen)
				}
			}
		})
	}
}

// answerAny answers each provider in its own dialect.
func answerAny(w http.ResponseWriter, r *http.Request) {
	for _, d := range dialects {
		if r.URL.Path == d.path {
			reply := d.turn(testkit.Turn{Text: "by proxy"})
			w.Header().Set("Content-Type", reply.Headers["Content-Type"])
			w.Header().Set("Connection", "close")
			_, _ = w.Write(reply.Body)
			return
		}
	}
	http.NotFound(w, r)
}

// behindProxy asks in a process whose environment names a proxy, and maybe
// certificates: a far server, one on this machine, and one that the proxy is not
// for.
func behindProxy(t *testing.T) {
	name, file, _ := strings.Cut(os.Getenv("MODEL_TEST_FILE"), "=")
	t.Setenv(name, file) // TestMain cleared it
	says := os.Getenv("MODEL_TEST_SAYS")
	each(t, func(t *testing.T, d dialect) {
		for _, url := range []string{"https://models.example.com", os.Getenv("MODEL_TEST_NETWORK")} {
			o := run(t, t.Context(), d.open(url, nil), ask)
			if says == "" && o.text != "by proxy" {
				t.Errorf("%s: %v", url, o.err)
			}
			if says != "" && (o.kind() != agent.ErrCertificate || !strings.Contains(o.err.Error(), says)) {
				t.Errorf("%s: %v", url, o.err)
			}
			if o.err != nil && strings.Contains(o.err.Error(), "hunter2") {
				t.Error(o.err)
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if o := run(t, ctx, dialects[1].open("https://direct.invalid", nil), ask); o.err == nil {
		t.Error("an address that does not exist answered")
	}
}
