package sandbox

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// internet is all that there is behind the egress proxy of a test: one host that
// answers, allowed.test, and addresses where nobody may turn up.
type internet struct {
	plain, secure *httptest.Server
	granted       []string // names that may be looked up

	mu      sync.Mutex
	lookups map[string]int
	escapes []string
}

// The addresses of the names. 203.0.113.0/24 is for documentation, and counts as
// public.
var addresses = map[string]string{
	"allowed.test": "203.0.113.10", "api.allowed.test": "203.0.113.10", "evil.test": "203.0.113.66", "loop.test": "127.0.0.1",
	"loop6.test": "::1", "meta.test": "169.254.169.254", "priv.test": "10.0.0.5",
}

func newInternet(t *testing.T, granted []string) *internet {
	n := &internet{granted: granted, lookups: map[string]int{}}
	n.plain = httptest.NewServer(http.HandlerFunc(n.serve))
	n.secure = httptest.NewUnstartedServer(http.HandlerFunc(n.serve))
	n.secure.TLS = &tls.Config{Certificates: []tls.Certificate{testCertificate}}
	n.secure.StartTLS()
	t.Cleanup(n.plain.Close)
	t.Cleanup(n.secure.Close)
	return n
}

func (n *internet) escape(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.escapes = append(n.escapes, fmt.Sprintf(format, args...))
}

// LookupNetIP implements egress.Resolver.
func (n *internet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	name := strings.TrimSuffix(host, ".")
	if !slices.ContainsFunc(n.granted, func(g string) bool { g, _, _ = strings.Cut(g, ":"); return g == "*" || g == name }) {
		n.escape("looked up %s", name)
	}
	n.mu.Lock()
	n.lookups[name]++
	times := n.lookups[name]
	n.mu.Unlock()
	address, known := addresses[name]
	if name == "rebind.test" {
		address, known = []string{"203.0.113.10", "127.0.0.1"}[(times-1)%2], true
	}
	if !known {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(address)}, nil
}

// dial connects to what stands for an address.
func (n *internet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	switch address {
	case "203.0.113.10:80":
		return dialer.DialContext(ctx, network, n.plain.Listener.Addr().String())
	case "203.0.113.10:443":
		return dialer.DialContext(ctx, network, n.secure.Listener.Addr().String())
	}
	if !strings.HasPrefix(address, "203.0.113.10:") {
		n.escape("connected to %s", address)
	}
	return nil, fmt.Errorf("nobody listens at %s", address)
}

func (n *internet) serve(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	if host != "allowed.test" && host != "api.allowed.test" && host != "rebind.test" && r.TLS == nil {
		n.escape("a request for the host %q", r.Host)
	}
	switch r.URL.Path {
	case "/json":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"ok":true,"temp":21.5}`)
	case "/big":
		fmt.Fprint(w, strings.Repeat("x", 300_000))
	case "/echo":
		_, _ = io.Copy(w, r.Body)
	case "/redir":
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	case "/ws":
		webSocket(w, r)
	default:
		fmt.Fprint(w, "ALLOWED-OK")
	}
}

// webSocket takes a connection over and says one thing.
func webSocket(w http.ResponseWriter, r *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	const message = "WS ALLOWED-OK"
	fmt.Fprintf(conn, "\x81%c%s", len(message), message)
	_, _ = bufio.NewReader(conn).ReadByte() // its close frame
}

var testCertificate tls.Certificate

// trustTestAuthority makes an authority that the runs of these tests trust, and
// a certificate of it for allowed.test.
func trustTestAuthority() (remove func(), err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authority, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "allowed.test"}, DNSNames: []string{"allowed.test", "api.allowed.test", "esm.sh"},
		NotBefore: template.NotBefore, NotAfter: template.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	testCertificate = tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
	dir, err := os.MkdirTemp("", "tendril-test-ca-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "ca.pem")
	all := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})
	for _, file := range append([]string{os.Getenv("SSL_CERT_FILE")}, authorityFiles...) {
		if system, err := os.ReadFile(file); err == nil { // for the public registry
			all = append(append(all, '\n'), system...)
			break
		}
	}
	if err := os.WriteFile(file, all, 0o600); err != nil {
		return nil, err
	}
	return func() { os.RemoveAll(dir) }, os.Setenv("SSL_CERT_FILE", file)
}

// TestRunner_UnixSockets: whoever listens in the workspace is no public host, and
// out of reach of a run that may reach any host.
func TestRunner_UnixSockets(t *testing.T) {
	runner := newRunner(t)
	if layer := runner.Layer(t.Context()); !layer.On {
		t.Skip("no operating system layer here: ", layer.Why)
	}
	ws := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(ws, "daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	met := make(chan bool)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			conn.Close()
		}
		met <- err == nil
	}()
	got := mustRun(t, runner, Job{Name: "sockets", Workspace: ws, Grant: Grant{Net: []string{AnyHost}}, Source: []byte(`
		import net from "node:net";
		const path = __workspace + "/daemon.sock";
		const client = () => Deno.createHttpClient({ proxy: { transport: "unix", path } } as never);
		const ways = {
			deno: () => Deno.connect({ transport: "unix", path }),
			node: () => new Promise((resolve, reject) => net.connect(path, () => resolve(1)).on("error", reject)),
			fetch: () => fetch("http://allowed.test/", { client: client() } as never),
			listen: async () => Deno.listen({ transport: "unix", path: __workspace + "/mine.sock" }),
		};
		for (const [name, way] of Object.entries(ways)) await way().then(() => console.log(name, "works"), () => console.log(name, "fails"));
		Deno.exit(0);`)})
	listener.Close()
	if <-met || got.Text != "deno fails\nnode fails\nfetch fails\nlisten fails" {
		t.Error(got.Text)
	}
}

// TestRunner_Network runs what a first capability with a network does, and reads
// what is told of it.
func TestRunner_Network(t *testing.T) {
	net := newInternet(t, []string{"allowed.test"})
	runner := newRunner(t)
	runner.Resolver, runner.Dial = net, net.dial
	if layer := runner.Layer(t.Context()); !layer.On {
		t.Skip("no operating system layer here: ", layer.Why)
	}
	job := Job{Name: "net", Workspace: t.TempDir(), Grant: Grant{Net: []string{"allowed.test"}}, Explain: true, Source: []byte(`
		const r = await fetch("https://allowed.test/json");
		console.log((await r.json()).temp);
		await fetch("http://allowed.test/redir?to=http%3A%2F%2Fevil.test%2Fx");`)}
	got := mustRun(t, runner, job)
	if got.Outcome != Failed || got.Stdout != "21.5\n" {
		t.Errorf("%s %q %s", got.Outcome, got.Stdout, got.Text)
	}
	var told []string
	for _, d := range got.Network {
		told = append(told, fmt.Sprintf("%s %s:%d %v %v", d.Method, d.Host, d.Port, d.Allowed, d.BytesDown > 0))
	}
	if want := "CONNECT allowed.test:443 true true, GET allowed.test:80 true true"; strings.Join(told, ", ") != want {
		t.Errorf("told %q", told)
	}
	if !slices.Contains(got.Flags, "--deny-run") {
		t.Errorf("flags %v", got.Flags)
	}
	job.Grant.Net = []string{"*"}
	got = mustRun(t, runner, job)
	if !strings.Contains(strings.Join(net.escapes, ","), "203.0.113.66") {
		t.Errorf("any host includes evil.test: %v, %s", net.escapes, got.Text)
	}
	job.Source = []byte(`await fetch("http://priv.test/")`)
	got = mustRun(t, runner, job)
	if !strings.Contains(got.Text+got.Error, "10.0.0.5") && got.Outcome != OK {
		t.Errorf("the reason is not told: %s", got.Text)
	}
}
