package model

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"
)

// newHTTPClient is the client that adapters use when they are given none:
// proxies come from the environment (never for loopback), certificates from the
// system, SSL_CERT_FILE and NODE_EXTRA_CA_CERTS. A reply may take as long as it
// takes, so only connecting and the wait for the first byte are bounded; the
// latter generously, because a local server may load a model first.
func newHTTPClient() *http.Client {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 10 * time.Minute,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          10,
		ForceAttemptHTTP2:     true,
	}
	pool, err := authorities()
	if err != nil {
		return &http.Client{Transport: failing{err}}
	}
	if pool != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport}
}

// authoritiesError is a file of certificates that cannot be used.
type authoritiesError struct{ variable, what string }

func (e *authoritiesError) Error() string {
	return fmt.Sprintf("the file of certificates that %s names %s", e.variable, e.what)
}

// authorities returns the system's certificates and those of the files that the
// environment names, or nil when the system's are all. NODE_EXTRA_CA_CERTS is
// there because people have set it for programs like this one. Go reads
// SSL_CERT_FILE by itself on most systems, but says nothing when it cannot.
func authorities() (*x509.CertPool, error) {
	system, extra := os.Getenv("SSL_CERT_FILE"), os.Getenv("NODE_EXTRA_CA_CERTS")
	own := runtime.GOOS == "darwin" || runtime.GOOS == "windows" // Go does not read it there
	var pool *x509.CertPool
	add := func(variable, path string, needed bool) error {
		certificates, err := os.ReadFile(path)
		if err != nil {
			return &authoritiesError{variable, fmt.Sprintf("cannot be read: %v", err)}
		}
		if !needed && holdsCertificate(certificates) {
			return nil
		}
		if pool == nil {
			if pool, err = x509.SystemCertPool(); err != nil {
				pool = x509.NewCertPool()
			}
		}
		if !pool.AppendCertsFromPEM(certificates) {
			return &authoritiesError{variable, "holds no certificate: " + path}
		}
		return nil
	}
	if system != "" {
		if err := add("SSL_CERT_FILE", system, own); err != nil {
			return nil, err
		}
	}
	if extra != "" && extra != system {
		if err := add("NODE_EXTRA_CA_CERTS", extra, true); err != nil {
			return nil, err
		}
	}
	return pool, nil
}

// holdsCertificate reports whether the first block of a file is a certificate.
func holdsCertificate(file []byte) bool {
	block, _ := pem.Decode(file)
	if block == nil || block.Type != "CERTIFICATE" {
		return false
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err == nil
}

// failing is a transport that cannot be made. Its error comes with the request,
// where it is seen.
type failing struct{ err error }

func (f failing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, f.err
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
