package sandbox

import (
	"strings"
	"testing"
)

func TestCheckHost(t *testing.T) {
	for _, entry := range []string{
		"example.com", "API.Example.com:443", "*.example.com", "*.example.com:8443", "a.b-c.d_e.example", "xn--bcher-kva.example",
		"example.com.", "8.8.8.8", "203.0.113.10:80", "localhost.example.com", "1.example",
	} {
		if err := CheckHost(entry); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
	for want, entries := range map[string][]string{
		"empty":             {""},
		"written * alone":   {"*:443"},
		"not supported yet": {"[::1]", "[2001:db8::1]:443", "::1", "fe80::1"},
		"scheme":            {"https://example.com", "file:///etc"},
		"path":              {"example.com/", "example.com/x", "example.com?q", "example.com#f"},
		"user":              {"user@example.com", "user:pw@example.com"},
		"commas or blanks":  {"a.com,b.com", "a.com b.com", " a.com", "a.com\n", "a.com\t"},
		"not a port":        {"a.com:", "a.com:0", "a.com:99999", "a.com:-1", "a.com:080", "a.com:http", "a.com:+80"},
		"host name":         {"*.*.com", "a.*.com", "foo*.com", "x.*", "bücher.example", "-a.com", "a-.com", ".com", "a..com", "*.", ".", "a\x00.com", "a%2e.com", "a。com"},
		"this machine":      {"localhost", "LOCALHOST:80", "localhost.", "x.localhost", "*.localhost", "printer.local", "metadata.google.internal", "*.internal", "a.localdomain", "router.lan", "x.home.arpa"},
		"without a dot":     {"intra", "com", "*.com", "host:80"},
		"not a public one": {
			"127.0.0.1", "127.1.2.3:80", "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "169.254.169.254", "172.16.0.1",
			"172.31.255.255", "192.168.1.1", "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255", "168.63.129.16",
		},
		"four decimal numbers": {"2130706433", "0x7f000001", "127.1", "0177.0.0.1", "0x7f.1", "1.2.3.4.5", "256.1.1.1", "127.0.0.1.", "*.127.0.0.1.", "x.1"},
	} {
		for _, entry := range entries {
			if err := CheckHost(entry); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want %q", entry, err, want)
			}
		}
	}
}

func FuzzCheckHost(f *testing.F) {
	for _, seed := range []string{"example.com", "*.example.com:443", "127.0.0.1", "[::1]", "a,b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		if CheckHost(entry) == nil && strings.ContainsAny(entry, ", /@\\\x00\n[]=") {
			t.Errorf("%q was let through", entry)
		}
	})
}
