package model

import (
	"net"
	"net/http"
	"time"
)

// newHTTPClient is the client that adapters use when they are given none:
// proxies come from the environment (never for loopback), certificates from the
// system or SSL_CERT_FILE. A reply may take as long as it takes, so only
// connecting and the wait for the first byte are bounded; the latter generously,
// because a local server may load a model first.
func newHTTPClient() *http.Client {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 10 * time.Minute,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          10,
		ForceAttemptHTTP2:     true,
	}}
}

// withoutRedirects copies c, or a new client for nil, so that it refuses
// redirects: following one would hand the key to whoever the first server names.
func withoutRedirects(c *http.Client) *http.Client {
	if c == nil {
		c = newHTTPClient()
	}
	guarded := *c
	guarded.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &guarded
}
