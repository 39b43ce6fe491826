package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

const (
	// Path is where MCP is served over HTTP.
	Path = "/mcp"

	maxBody     = jsonrpc.MaxLine
	maxHeader   = 64 << 10
	maxSessions = 64
	idleSession = time.Hour        // without a request
	bodyTimeout = time.Minute      // for a request's body to arrive
	headTimeout = 10 * time.Second // for its header
)

// Serve serves sessions by streamable HTTP at [Path] until ctx ends (nil) or l
// fails. l must listen on this machine only. Each request must carry the token as
// a bearer token, and name l in its Host, and in its Origin if it has one.
func (s *Server) Serve(ctx context.Context, l net.Listener, token string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.sync(ctx)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, &sdk.StreamableHTTPOptions{
		SessionTimeout: idleSession, MaxRequestBodyBytes: -1, // s.checkBody has its own limit
	})
	mux := http.NewServeMux()
	mux.Handle(Path, s.checkBody(s.endSession(handler)))
	server := &http.Server{
		Handler:           guard(l.Addr(), token, mux),
		ReadHeaderTimeout: headTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
	}
	failed := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { failed <- server.Serve(l) })
	running.Go(func() { s.watch(ctx) })
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	cancel()
	s.endAll()
	stop, done := context.WithTimeout(context.Background(), stopWithin/2)
	defer done()
	if server.Shutdown(stop) != nil {
		_ = server.Close() // what is left are streams that nobody ends
	}
	s.endAll() // those that began meanwhile
	running.Wait()
	return err
}

// endAll ends all sessions, and waits a while for their calls.
func (s *Server) endAll() {
	s.running.cancel(func(*sdk.ServerSession) bool { return true })
	var ending sync.WaitGroup
	for session := range s.sdk.Sessions() {
		ending.Go(func() { s.end(session.Close, session) })
	}
	ending.Wait()
}

// guard lets only those requests pass that a program of this user sent on
// purpose: a page in a browser has no token, and a name that was made to point
// here is not ours.
func guard(addr net.Addr, token string, next http.Handler) http.Handler {
	hosts := ownHosts(addr)
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		origin := r.Header.Get("Origin")
		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, "the Host header does not name this server", http.StatusForbidden)
		case len(r.Header.Values("Origin")) > 0 && !slices.ContainsFunc(hosts, func(h string) bool { return origin == "http://"+h }):
			http.Error(w, "requests from other origins are refused", http.StatusForbidden)
		case crossOrigin.Check(r) != nil:
			http.Error(w, "requests from other sites are refused", http.StatusForbidden)
		case !authorized(r, token):
			w.Header().Set("WWW-Authenticate", `Bearer realm="tendril"`)
			http.Error(w, "the bearer token is missing or wrong; `tendril mcp --http` says where it is kept", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ownHosts are the Host headers that mean a listener on this machine.
func ownHosts(addr net.Addr) []string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil
	}
	hosts := []string{net.JoinHostPort(host, port), net.JoinHostPort("localhost", port)}
	if port == strconv.Itoa(80) {
		hosts = append(hosts, host, "localhost")
	}
	return hosts
}

// endSession ends what still runs in a session that the client deletes, which
// the SDK would wait for, and bounds the number of sessions.
func (s *Server) endSession(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("Mcp-Session-Id")
		switch {
		case r.Method == http.MethodDelete:
			s.running.cancel(func(session *sdk.ServerSession) bool { return session.ID() == id })
		case r.Method == http.MethodPost && id == "" && len(slices.Collect(s.sdk.Sessions())) >= maxSessions:
			http.Error(w, fmt.Sprintf("%d sessions are open; close one", maxSessions), http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkBody reads a request's body, within bounds of time and size, and answers
// what is not JSON, and what the SDK would change on its way: numbers as ids, or
// as progress tokens, that it would round.
func (s *Server) checkBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		deadline := http.NewResponseController(w)
		_ = deadline.SetReadDeadline(time.Now().Add(bodyTimeout)) // a connection that cannot have one has none to wait for
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		_ = deadline.SetReadDeadline(time.Time{})
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			http.Error(w, fmt.Sprintf("the request is longer than %d MiB", maxBody>>20), http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, "the request cannot be read", http.StatusBadRequest)
			return
		}
		if failure := checkMessage(body); failure != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": failure}) // the client is gone
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// checkMessage says what is wrong with a message, or with one of a batch.
func checkMessage(body []byte) *jsonrpc.Error {
	var batch []json.RawMessage
	if !json.Valid(body) {
		return jsonrpc.Errorf(jsonrpc.CodeParse, "not JSON")
	}
	if json.Unmarshal(body, &batch) != nil {
		batch = []json.RawMessage{body}
	}
	for _, raw := range batch {
		var fields, params, meta map[string]json.RawMessage
		_ = json.Unmarshal(raw, &fields) // what is no object has no ids
		_ = json.Unmarshal(fields["params"], &params)
		_ = json.Unmarshal(params["_meta"], &meta)
		for name, id := range map[string]json.RawMessage{"id": fields["id"], "requestId": params["requestId"], "progressToken": meta["progressToken"]} {
			if !keepsDigits(id) {
				return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s must be a string, or an integer up to 2^53", name)
			}
		}
	}
	return nil
}

// keepsDigits reports whether raw is absent, no number, or a number that stays
// as it is when it is read as a float64 and written as an integer.
func keepsDigits(raw json.RawMessage) bool {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && -1<<53 <= n && n <= 1<<53 && strconv.FormatInt(n, 10) == string(raw)
}
