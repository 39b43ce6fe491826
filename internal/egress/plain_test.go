package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const public = "203.0.113.5"

func hello200(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s%s", r.Host, r.URL) }

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	response, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestPlainRequest(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"api.example.com"}})
	w.name("api.example.com", []string{public})
	var seen http.Header
	w.server(public+":80", func(out http.ResponseWriter, r *http.Request) {
		seen = r.Header
		out.Header().Set("X-Answer", "yes")
		out.Header().Set("Keep-Alive", "timeout=5")
		out.WriteHeader(http.StatusTeapot)
		hello200(out, r)
	})
	answer := w.say("GET http://API.example.com.?q=1 HTTP/1.1\r\nHost: api.example.com\r\nX-one: 1\r\nConnection: close, X-Hop\r\nX-Hop: 2\r\nProxy-Authorization: Basic c2VjcmV0\r\nTE: trailers\r\n\r\n")
	contains(t, "answer", answer, "HTTP/1.1 418 I'm a teapot\r\n")
	contains(t, "answer", answer, "X-Answer: yes\r\n")
	contains(t, "answer", answer, "\r\n\r\nhello api.example.com/?q=1")
	if strings.Contains(answer, "Keep-Alive") {
		t.Error(answer)
	}
	if len(seen) != 1 || seen.Get("X-One") != "1" {
		t.Errorf("the server saw %v", seen)
	}
	d := w.last()
	if !d.Allowed || d.Host != "api.example.com" || d.Port != 80 || d.Method != "GET" || d.Address != public+":80" || d.Status != 418 || d.BytesUp == 0 || d.BytesDown == 0 || d.Reason != "" {
		t.Errorf("%+v", d)
	}
	equal(t, "lookups", w.lookups, []string{"api.example.com."})
	if up, down := w.proxy.Bytes(); up != d.BytesUp || down != d.BytesDown {
		t.Errorf("total %d up, %d down", up, down)
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t, Options{
		Allow: []string{"api.example.com", "*.internal.example.com", "half.test", "four.test:80", "down.test", "loop6.test", "own.test", "127.0.0.1:8080", "named.test"},
		Local: func() ([]netip.Prefix, error) { return []netip.Prefix{netip.MustParsePrefix("2001:db8:1::/64")}, nil },
	})
	w.name("x.internal.example.com", []string{"10.0.0.8"})
	w.name("half.test", []string{public, "169.254.169.254"})
	w.name("down.test", []string{"203.0.113.9", "203.0.113.10"})
	w.name("loop6.test", []string{"::1"})
	w.name("own.test", []string{"2001:db8:1::7"})
	w.name("named.test", []string{"127.0.0.1"})
	for _, c := range []struct {
		url    string
		status int
		want   string
	}{
		{"http://example.org/", 403, "tendril: example.org is not among the hosts of this capability (api.example.com, *.internal.example.com, half.test"},
		{"http://x.internal.example.com/", 403, "tendril: x.internal.example.com resolves to 10.0.0.8, which is not a public address\n"},
		{"http://half.test/", 403, "half.test resolves to 169.254.169.254, which is not a public address"},
		{"http://loop6.test:3000/", 403, "loop6.test resolves to ::1, which is not a public address"},
		{"http://own.test/", 403, "own.test resolves to 2001:db8:1::7, which is an address of this machine's own network"},
		{"http://four.test:81/", 403, "port 81 of four.test is not among"},
		{"http://api.example.com/", 502, "tendril: no address is known for api.example.com\n"},
		{"http://named.test:8080/", 403, "named.test resolves to 127.0.0.1, which is not"},
		{"http://127.0.0.1:8081/", 403, "port 8081 of 127.0.0.1 is not among"},
		{"http://169.254.169.254/latest/meta-data/", 403, "169.254.169.254 is not among"},
		{"http://[::ffff:127.0.0.1]:8080/", 403, "is not among"},
	} {
		host := strings.Split(c.url, "/")[2]
		for _, request := range []string{
			"GET " + c.url + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n",
			"POST " + c.url + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 3\r\n\r\nabc",
			"CONNECT " + withPort(host) + " HTTP/1.1\r\nHost: " + withPort(host) + "\r\n\r\n",
		} {
			answer := w.say(request)
			contains(t, request, answer, fmt.Sprintf("HTTP/1.1 %d ", c.status))
			contains(t, request, answer, c.want)
			contains(t, request, answer, "X-Tendril-Refused: 1\r\n")
			contains(t, request, answer, "Content-Type: text/plain")
			if d := w.last(); d.Allowed || d.Status != c.status || !strings.Contains(answer, "tendril: "+d.Reason+"\n") {
				t.Errorf("%+v", d)
			}
		}
		if w.reached() {
			t.Errorf("%s: somebody was dialed", c.url)
		}
	}
	contains(t, "dial", w.say("GET http://down.test/ HTTP/1.0\r\nHost: down.test\r\n\r\n"), "502 Bad Gateway")
	equal(t, "dials", w.dials(), []string{"203.0.113.9:80", "203.0.113.10:80"})
}

func withPort(host string) string {
	if strings.HasSuffix(host, "]") || !strings.Contains(host, ":") {
		return host + ":80"
	}
	return host
}

func TestPublicAnyHost(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"*"}})
	w.name("a.test", []string{public})
	w.name("localhost", []string{"127.0.0.1"})
	w.server(public+":80", hello200)
	if _, body := get(t, w.client(), "http://a.test/x"); body != "hello a.test/x" {
		t.Error(body)
	}
	if _, body := get(t, w.client(), "http://"+public+"/x"); body != "hello "+public+"/x" {
		t.Error(body)
	}
	w.dials()
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]", "169.254.169.254", "0.0.0.0"} {
		answer := w.say("GET http://" + host + "/ HTTP/1.0\r\nHost: " + host + "\r\n\r\n")
		contains(t, host, answer, "HTTP/1.1 403 ")
		contains(t, host, answer, "is not a public address")
	}
	if w.reached() {
		t.Error("somebody was dialed")
	}
}

func TestGrantedLiteral(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"127.0.0.1:8080", "[::1]:3000"}, Local: func() ([]netip.Prefix, error) { return nil, io.EOF }})
	w.server("127.0.0.1:8080", hello200)
	w.server("[::1]:3000", hello200)
	for _, host := range []string{"127.0.0.1:8080", "[::1]:3000"} {
		if status, body := get(t, w.client(), "http://"+host+"/"); status != 200 || body != "hello "+host+"/" {
			t.Error(status, body)
		}
	}
	if len(w.lookups) > 0 {
		t.Error(w.lookups)
	}
}

// A name that answers differently the second time is dialed at the address
// that was vetted, and the next request is decided anew.
func TestRebinding(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"rebind.test"}})
	w.name("rebind.test", []string{public}, []string{"127.0.0.1"})
	w.server(public+":80", hello200)
	client := w.client()
	if status, _ := get(t, client, "http://rebind.test/"); status != 200 {
		t.Error(status)
	}
	if status, body := get(t, client, "http://rebind.test/"); status != 403 {
		t.Error(status, body)
	}
	equal(t, "dials", w.dials(), []string{public + ":80"})
	equal(t, "lookups", w.lookups, []string{"rebind.test.", "rebind.test."})
}

func TestKeepAlive(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test", "b.test"}})
	w.name("a.test", []string{public})
	w.name("b.test", []string{"203.0.113.6"})
	w.server(public+":80", hello200)
	w.server("203.0.113.6:80", hello200)
	conn := w.conn()
	in := bufio.NewReader(conn)
	for _, c := range []struct{ host, want string }{
		{"a.test", "hello a.test/"}, {"a.test", "hello a.test/"}, {"evil.test", "evil.test is not among"}, {"b.test", "hello b.test/"}, {"a.test", "hello a.test/"},
	} {
		fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n", c.host, c.host)
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		contains(t, c.host, string(body), c.want)
	}
	equal(t, "dials", w.dials(), []string{public + ":80", "203.0.113.6:80", public + ":80"})
	var hosts []string
	for _, d := range w.proxy.Decisions() {
		hosts = append(hosts, d.Host)
	}
	equal(t, "decisions", hosts, []string{"a.test", "a.test", "evil.test", "b.test", "a.test"})
}

// A server that closed the kept connection is dialed again; a POST never goes
// to a connection that may be stale.
func TestStaleConnection(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	w.name("a.test", []string{public})
	w.raw(public+":80", func(conn net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	client := w.client()
	for range 3 {
		if status, body := get(t, client, "http://a.test/"); status != 200 || body != "ok" {
			t.Error(status, body)
		}
	}
	response, err := client.Post("http://a.test/", "text/plain", strings.NewReader("x"))
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response, err)
	}
	response.Body.Close()
}

func TestBodiesStream(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	w.name("a.test", []string{public})
	w.server(public+":80", func(out http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(out)
		_ = control.EnableFullDuplex()
		out.WriteHeader(200)
		_ = control.Flush()
		_ = relayLines(out, r.Body, control)
	})
	for _, framing := range []string{"Transfer-Encoding: chunked", "Content-Length: 9"} {
		conn := w.conn()
		fmt.Fprintf(conn, "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n", framing)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(response.Body)
		for _, line := range []string{"a\n", "bb\n", "ccc\n"} { // each comes back before the next is sent
			if strings.HasPrefix(framing, "Transfer") {
				fmt.Fprintf(conn, "%x;ext=1\r\n%s\r\n", len(line), line)
			} else {
				io.WriteString(conn, line)
			}
			if got, err := in.ReadString('\n'); got != line || err != nil {
				t.Fatalf("got %q %v", got, err)
			}
		}
		if strings.HasPrefix(framing, "Transfer") {
			io.WriteString(conn, "0\r\nX-Trailer: 1\r\n\r\n")
		}
		if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
			t.Errorf("%q %v", rest, err)
		}
	}
}

func relayLines(out http.ResponseWriter, in io.Reader, control *http.ResponseController) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		io.WriteString(out, line)
		_ = control.Flush()
	}
}

func TestLargeBodies(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	w.name("a.test", []string{public})
	w.server(public+":80", func(out http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(out).EnableFullDuplex()
		_, _ = io.Copy(out, r.Body)
	})
	big := strings.Repeat("0123456789abcdef", 1<<16)
	for _, body := range []io.Reader{strings.NewReader(big), io.MultiReader(strings.NewReader(big))} {
		response, err := w.client().Post("http://a.test/", "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(got) != big {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	if d := w.last(); d.BytesUp < 1<<20 || d.BytesDown < 1<<20 {
		t.Errorf("%+v", d)
	}
}

func TestExpectContinue(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	w.name("a.test", []string{public})
	w.server(public+":80", func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "" {
			t.Error("the server was asked")
		}
		_, _ = io.Copy(out, r.Body)
	})
	conn := w.conn()
	io.WriteString(conn, "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
	in := bufio.NewReader(conn)
	if line, _ := in.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatal(line)
	}
	in.ReadString('\n')
	io.WriteString(conn, "abc")
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(response.Body); string(body) != "abc" {
		t.Errorf("%q", body)
	}
}

func TestAnswersWithoutBody(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	w.name("a.test", []string{public})
	w.server(public+":80", func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			out.WriteHeader(204)
		case "/304":
			out.Header().Set("Etag", "x")
			out.WriteHeader(304)
		case "/302":
			http.Redirect(out, r, "http://169.254.169.254/", http.StatusFound)
		default:
			out.Header().Set("Content-Length", "1234")
			if r.Method != http.MethodHead {
				t.Error(r.Method)
			}
		}
	})
	client := w.client()
	for path, want := range map[string]int{"/204": 204, "/304": 304, "/302": 403} {
		if status, _ := get(t, client, "http://a.test"+path); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
	response, err := client.Head("http://a.test/")
	if err != nil || response.ContentLength != 1234 {
		t.Error(response, err)
	}
}

// Odd servers must neither hang nor confuse the proxy.
func TestOddAnswers(t *testing.T) {
	for answer, want := range map[string]string{
		"":                             "502 Bad Gateway",
		"nonsense\r\n\r\n":             "502 Bad Gateway",
		"HTTP/1.1 200 OK\r\n\r\nuntil": "\r\nuntil\r\n",
		"HTTP/1.0 200 OK\r\n\r\nold":   "\r\nold\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 Fine\r\nContent-Length: 1\r\n\r\nz": "HTTP/1.1 200 Fine\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n":            "a protocol that was not asked for",
		strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 20):                                       "sent no final answer",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 1<<20) + "\r\n\r\n":                           "an answer that cannot be read",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nzz":                        "502 Bad Gateway",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort":                                          "short",
		"HTTP/1.1 200 O\x1bK\r\nContent-Length: 0\r\n\r\n":                                           "HTTP/1.1 200 OK\r\n",
	} {
		w := newWorld(t, Options{Allow: []string{"a.test"}})
		w.name("a.test", []string{public})
		w.raw(public+":80", func(conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, answer)
		})
		conn := w.conn()
		io.WriteString(conn, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
		got, _ := io.ReadAll(conn)
		contains(t, answer[:min(len(answer), 60)], string(got), want)
	}
}

// smuggled are requests that two readers might read differently, or that hide
// where they go.
var smuggled = []string{
	"GET http://a.test/ HTTP/1.1\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: evil.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nhOST: a.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test:81\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test, evil.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: u@a.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost : a.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX : 1\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\n Host: a.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: 1\r\n folded\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: 1\rHost: evil.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: 1\nHost: evil.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\nHost: a.test\n\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: \x00\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n: empty\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nno colon\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5, 5\r\n\r\nabcde",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: +5\r\n\r\nabcde",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0x5\r\n\r\nabcde",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: -1\r\n\r\n",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length:\r\n\r\n",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 99999999999999999999\r\n\r\n",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
	"POST http://a.test/ HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"GET http://a.test/ HTTP/1.1 \r\nHost: a.test\r\n\r\n",
	"GET  http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET\thttp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/ x HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/\x7f HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/ü HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/ HTTP/2.0\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.2\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/ http/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/\r\n\r\n",
	"\r\nGET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"G@T http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"TRACE http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"track http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"connect a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n",
	"GET /px HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET //a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET file:///etc/passwd HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http:///x HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test@evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"GET http://u:geheim@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://evil.test#a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://evil.test\\@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test\\.evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test%2eevil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test\x00.evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET http://a.test:80x/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/#x HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://2130706433/ HTTP/1.1\r\nHost: 2130706433\r\n\r\n",
	"GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n",
	"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"CONNECT http://a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"CONNECT a.test:443/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"CONNECT u@a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"CONNECT a.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
	"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: a.test\r\n\r\nGET /px HTTP/1.0\r\n\r\n",
	"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nContent-Length: 3\r\n\r\nabc",
	"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"GET http://a.test/" + strings.Repeat("x", maxTarget) + " HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n",
	"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n" + strings.Repeat("X: 1\r\n", maxHead/6) + "\r\n",
}

func TestSmuggling(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	w.name("a.test", []string{public})
	w.server(public+":80", hello200)
	for _, request := range smuggled {
		what := fmt.Sprintf("%.80q", request)
		answer := w.say(request)
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") && !strings.HasPrefix(answer, "HTTP/1.1 403 ") || strings.Count(answer, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: %.200q", what, answer)
		}
		if strings.Contains(answer, "geheim") {
			t.Errorf("%s: %q", what, answer)
		}
		if d := w.last(); d.Allowed || d.Reason == "" {
			t.Errorf("%s: %+v", what, d)
		}
		if w.reached() {
			t.Errorf("%s: somebody was dialed", what)
		}
	}
}

// A malformed chunk ends the exchange, and nothing behind it is a request.
func TestMalformedChunks(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	w.name("a.test", []string{public})
	var bodies atomic.Int32
	w.server(public+":80", func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			bodies.Add(1)
		}
	})
	for _, body := range []string{
		"5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n",
		"+5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "ffffffffffffffffff\r\nhello", "\r\n", "5\rX\r\nhello\r\n0\r\n\r\n", "0\r\nX: 1\n\r\n",
		"5_0\r\n", "5;" + strings.Repeat("x", 2*maxLine) + "\r\nhello\r\n0\r\n\r\n", "0\r\n" + strings.Repeat("X: 1234567890\r\n", maxHead/8) + "\r\n",
	} {
		answer := w.say("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n" + body + "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
		if strings.Contains(answer, "200 OK") {
			t.Errorf("%.40q: %q", body, answer)
		}
	}
	if n := bodies.Load(); n > 0 {
		t.Errorf("%d bodies arrived whole", n)
	}
}

func TestParallel(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"*.test"}, MaxConns: 20})
	w.server(public+":80", hello200)
	for i := range 50 {
		w.name(fmt.Sprintf("h%d.test", i), []string{public})
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			host := fmt.Sprintf("h%d.test", i)
			contains(t, host, w.say("GET http://"+host+"/ HTTP/1.0\r\n\r\n"), "hello "+host+"/")
			client := w.client()
			defer client.CloseIdleConnections()
			for range 3 {
				if status, body := get(t, client, "http://"+host+"/"); status != 200 || body != "hello "+host+"/" {
					t.Error(status, body)
				}
			}
		})
	}
	all.Wait()
}

func TestTimeouts(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}, HeadTimeout: 50 * time.Millisecond, IdleTimeout: 150 * time.Millisecond})
	w.name("a.test", []string{public})
	w.raw(public+":80", func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	conn := w.conn()
	io.WriteString(conn, "GET http://a.test/ HT")
	got, _ := io.ReadAll(conn)
	contains(t, "slow head", string(got), "408 Request Timeout")

	conn = w.conn() // says nothing
	if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
		t.Errorf("%q %v", got, err)
	}
	conn = w.conn()
	io.WriteString(conn, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	got, _ = io.ReadAll(conn)
	contains(t, "silent server", string(got), "a.test:80 did not answer in time")
}

// A client that goes away takes the connection to the server with it.
func TestClientLeaves(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	w.name("a.test", []string{public})
	asked, gone := make(chan bool), make(chan bool)
	w.raw(public+":80", func(conn net.Conn) {
		in := bufio.NewReader(conn)
		_, _ = http.ReadRequest(in)
		close(asked)
		_, _ = io.Copy(io.Discard, in)
		close(gone)
	})
	conn := w.conn()
	io.WriteString(conn, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
	<-asked
	conn.Close()
	<-gone
	if d := w.last(); d.Reason != "the capability broke the request off" {
		t.Errorf("%+v", d)
	}
}

func TestDecisionsAreBounded(t *testing.T) {
	w := newWorld(t, Options{Allow: []string{"a.test"}})
	conn := w.conn()
	in := bufio.NewReader(conn)
	go func() {
		for i := range maxDecisions + 10 {
			fmt.Fprintf(conn, "GET http://h%d.test/ HTTP/1.1\r\nHost: h%d.test\r\n\r\n", i%2, i%2)
		}
	}()
	for range maxDecisions + 10 {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
	}
	if n := len(w.proxy.Decisions()); n != maxDecisions {
		t.Error(n)
	}
	if rest := w.proxy.Unlisted(); rest["h0.test"] != 5 || rest["h1.test"] != 5 {
		t.Error(rest)
	}
	get := func(host string) {
		fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host)
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
	}
	for range 2 {
		get("late.test")
	}
	if d := w.last(); d.Host != "late.test" || w.proxy.Unlisted()["late.test"] != 1 {
		t.Errorf("a flood hides who comes after it: %+v", d)
	}
	for i := range maxDecisions + 10 {
		get(fmt.Sprintf("n%d.test", i))
	}
	if n := len(w.proxy.Decisions()); n >= 2*maxDecisions {
		t.Error(n)
	}
}
