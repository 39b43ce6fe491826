package egress

import (
	"net/http"
	"strconv"
	"strings"
)

// request is a head whose meaning was checked.
type request struct {
	head
	target    target
	path      string // what the server is asked for, in origin form
	length    int64  // of the body; -1: chunked
	websocket bool   // asks to become a WebSocket
	close     bool   // no request comes after this one
	expects   bool   // waits for 100 Continue before the body
}

// parseRequest checks a head. Inside a tunnel requests have the origin form and
// can only be for the tunnel's own target. The error is a *refusal; the request
// it comes with holds what could be read, for the journal.
func parseRequest(h head, tunnel *target) (*request, *refusal) {
	r := &request{head: h}
	if bad := r.setTarget(tunnel); bad != nil {
		return r, bad
	}
	if bad := r.checkHost(); bad != nil {
		return r, bad
	}
	if bad := r.setBody(); bad != nil {
		return r, bad
	}
	r.close = h.minor == '0' || h.lists("Connection", "close") || h.lists("Proxy-Connection", "close")
	r.expects = h.minor == '1' && r.length != 0 && h.lists("Expect", "100-continue")
	r.websocket = h.method == http.MethodGet && h.minor == '1' && r.length == 0 &&
		h.lists("Connection", "upgrade") && len(h.all("Upgrade")) == 1 && strings.EqualFold(h.all("Upgrade")[0], "websocket")
	return r, nil
}

func (r *request) setTarget(tunnel *target) *refusal {
	switch strings.ToUpper(r.method) {
	case http.MethodTrace, "TRACK":
		return refuse(http.StatusForbidden, "%s is not let through: it would echo headers", strings.ToUpper(r.method))
	case http.MethodConnect:
		if tunnel != nil || r.method != http.MethodConnect {
			return refuse(http.StatusBadRequest, "a CONNECT cannot stand here")
		}
		return r.take(r.head.target, 0)
	}
	if tunnel != nil {
		if !strings.HasPrefix(r.head.target, "/") && (r.head.target != "*" || r.method != http.MethodOptions) {
			return refuse(http.StatusBadRequest, "a request inside a tunnel names a path alone")
		}
		r.target, r.path = *tunnel, r.head.target
		return r.checkPath()
	}
	scheme, rest, found := strings.Cut(r.head.target, "://")
	if !found {
		return refuse(http.StatusBadRequest, "this is a proxy: the request names no http:// URL")
	}
	switch strings.ToLower(scheme) {
	case "http", "ws":
	case "https", "wss":
		return refuse(http.StatusBadRequest, "%s goes through a tunnel (CONNECT), so that it stays encrypted", strings.ToLower(scheme))
	default:
		return refuse(http.StatusBadRequest, "only http and https URLs can be reached")
	}
	end := strings.IndexAny(rest, "/?#\\")
	if end < 0 {
		end = len(rest)
	}
	r.path = rest[end:]
	if r.path == "" || r.path[0] == '?' {
		r.path = "/" + r.path
	}
	if bad := r.take(rest[:end], 80); bad != nil {
		return bad
	}
	return r.checkPath()
}

// take reads the authority of the target.
func (r *request) take(authority string, fallback uint16) *refusal {
	if strings.Contains(authority, "@") {
		return refuse(http.StatusBadRequest, "the address cannot be used: it carries a user name or a password")
	}
	t, err := parseAuthority(authority, fallback)
	if err != nil {
		return refuse(http.StatusBadRequest, "the address cannot be used: %v", err)
	}
	r.target = t
	return nil
}

func (r *request) checkPath() *refusal {
	if strings.Contains(r.path, "#") || strings.HasPrefix(r.path, "\\") {
		return refuse(http.StatusBadRequest, "the path of the URL is malformed")
	}
	return nil
}

// checkHost wants the Host header to say what the URL says. The old version and
// CONNECT may leave it out.
func (r *request) checkHost() *refusal {
	hosts := r.all("Host")
	if len(hosts) == 0 && (r.minor == '0' || r.method == http.MethodConnect) {
		return nil
	}
	if len(hosts) != 1 {
		return refuse(http.StatusBadRequest, "the request has %d Host headers", len(hosts))
	}
	fallback := uint16(80)
	if r.method == http.MethodConnect {
		fallback = r.target.port
	}
	named, err := parseAuthority(hosts[0], fallback)
	if err != nil {
		return refuse(http.StatusBadRequest, "the Host header cannot be used: %v", err)
	}
	if named != r.target {
		return refuse(http.StatusForbidden, "the Host header names %s, but the request is for %s", named, r.target)
	}
	return nil
}

// setBody allows exactly one way to say how long the body is.
func (r *request) setBody() *refusal {
	lengths, codings := r.all("Content-Length"), r.all("Transfer-Encoding")
	switch {
	case len(lengths) > 0 && len(codings) > 0:
		return refuse(http.StatusBadRequest, "the request has both Content-Length and Transfer-Encoding")
	case len(codings) > 0:
		if len(codings) != 1 || !strings.EqualFold(codings[0], "chunked") || r.minor == '0' {
			return refuse(http.StatusBadRequest, "the request has a Transfer-Encoding other than chunked")
		}
		r.length = -1
	case len(lengths) > 0:
		n, err := strconv.ParseUint(lengths[0], 10, 63)
		if err != nil || len(lengths) != 1 || strings.Trim(lengths[0], "0123456789") != "" {
			return refuse(http.StatusBadRequest, "the Content-Length of the request is not one number")
		}
		r.length = int64(n)
	}
	if r.method == http.MethodConnect && r.length != 0 {
		return refuse(http.StatusBadRequest, "a CONNECT has no body")
	}
	return nil
}

// idempotent says whether the request may be sent again when a server closed
// the connection before it answered.
func (r *request) idempotent() bool {
	return r.length == 0 && (r.method == http.MethodGet || r.method == http.MethodHead || r.method == http.MethodOptions)
}

// outgoing writes the head for the server: the URL's host, the headers in their
// order and spelling without those that are meant for a proxy, and a framing of
// our own.
func (r *request) outgoing() string {
	var out strings.Builder
	out.WriteString(r.method + " " + r.path + " HTTP/1.1\r\nHost: " + r.target.header() + "\r\n")
	for _, f := range r.fields {
		if !r.staysHere(f.name) {
			out.WriteString(f.name + ": " + f.value + "\r\n")
		}
	}
	switch {
	case r.websocket:
		out.WriteString("Connection: Upgrade\r\nUpgrade: websocket\r\n")
	case r.length < 0:
		out.WriteString("Transfer-Encoding: chunked\r\n")
	case r.length > 0 || len(r.all("Content-Length")) > 0:
		out.WriteString("Content-Length: " + strconv.FormatInt(r.length, 10) + "\r\n")
	}
	out.WriteString("\r\n")
	return out.String()
}

func (r *request) staysHere(name string) bool {
	switch strings.ToLower(name) {
	case "host", "content-length", "expect":
		return true
	}
	return isHopByHop(name) || r.lists("Connection", name)
}

// isHopByHop names the headers that are for the next hop alone.
func isHopByHop(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings":
		return true
	}
	return strings.HasPrefix(name, "proxy-")
}
