package testkit

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Provider is a scripted model provider on a real loopback socket. It answers
// any POST, whatever its path, and records what it was asked; so one script
// serves every provider whose base URL points at [Provider.URL].
type Provider struct {
	// URL is "http://127.0.0.1:port", without a trailing slash.
	URL string

	answer   func(Request) Reply
	server   *http.Server
	stop     chan struct{}
	once     sync.Once
	mu       sync.Mutex
	requests []Request
}

// Request is one recorded request.
type Request struct {
	N       int // counts from 0
	Time    time.Time
	Path    string
	Headers http.Header
	Body    []byte
}

// Reply is what a provider sends back for one request. The zero value is an
// empty 200.
type Reply struct {
	Body    []byte
	Status  int // 0 is 200
	Headers map[string]string
	// Split cuts the body into writes that are flushed one by one: "" or "all"
	// for one write, "lines", "bytes", or a number of bytes.
	Split string
	Gap   time.Duration // between two writes
	Delay time.Duration // before the status line
	// End is what follows the body: "" or "close" ends the reply properly,
	// "hang" keeps the connection open in silence, "reset" drops it.
	End string
}

// NewProvider starts a provider that plays replies in order, and answers 500
// when it is asked more often. It stops with the test.
func NewProvider(tb testing.TB, replies ...Reply) *Provider {
	tb.Helper()
	return NewProviderFunc(tb, Script{Steps: replies}.Answer)
}

// NewProviderFunc starts a provider that answers each request with what answer
// returns for it; requests that come at the same time call it at the same time.
// It stops with the test.
func NewProviderFunc(tb testing.TB, answer func(Request) Reply) *Provider {
	tb.Helper()
	p, err := Serve(answer)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// Serve starts a provider outside of a test. The caller closes it.
func Serve(answer func(Request) Reply) (*Provider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the scripted provider: %w", err)
	}
	p := &Provider{
		URL:    "http://" + listener.Addr().String(),
		answer: answer,
		stop:   make(chan struct{}),
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// Close drops every connection and ends every hanging reply. A second call does
// nothing.
func (p *Provider) Close() {
	p.once.Do(func() {
		close(p.stop)
		_ = p.server.Close()
	})
}

// Requests returns what was asked so far, in order.
func (p *Provider) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.requests...)
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	reply := p.answer(p.record(r, body))
	if !p.pause(r, reply.Delay) {
		return
	}
	p.send(w, r, reply)
}

func (p *Provider) record(r *http.Request, body []byte) Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	req := Request{N: len(p.requests), Time: time.Now(), Path: r.URL.Path, Headers: r.Header.Clone(), Body: body}
	p.requests = append(p.requests, req)
	return req
}

func (p *Provider) send(w http.ResponseWriter, r *http.Request, reply Reply) {
	for name, value := range reply.Headers {
		w.Header().Set(name, value)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	flush := http.NewResponseController(w)
	for _, piece := range pieces(reply.Body, reply.Split) {
		if _, err := w.Write(piece); err != nil || flush.Flush() != nil {
			return
		}
		if !p.pause(r, reply.Gap) {
			return
		}
	}
	_ = flush.Flush()
	if reply.End == "hang" {
		select {
		case <-r.Context().Done():
		case <-p.stop:
		}
	}
	if reply.End == "hang" || reply.End == "reset" {
		panic(http.ErrAbortHandler) // drops the connection without the end of the body
	}
}

// pause waits for d and reports whether the client is still there.
func (p *Provider) pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
	case <-p.stop:
	}
	return false
}

func pieces(body []byte, split string) [][]byte {
	if split == "lines" {
		return bytes.SplitAfter(body, []byte("\n"))
	}
	size := len(body)
	if split == "bytes" {
		size = 1
	} else if n, err := strconv.Atoi(strings.TrimSpace(split)); err == nil && n > 0 {
		size = n
	}
	var all [][]byte
	for len(body) > 0 {
		n := min(size, len(body))
		all = append(all, body[:n])
		body = body[n:]
	}
	return all
}
