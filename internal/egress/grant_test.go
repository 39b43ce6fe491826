package egress

import (
	"net/netip"
	"strings"
	"testing"
)

func TestGrant(t *testing.T) {
	for _, c := range []struct{ allow, yes, no string }{
		{"api.example.com", "api.example.com:80 API.Example.COM:443 api.example.com.:9", "example.com:80 xapi.example.com:80 api.example.com.evil.test:80 a.api.example.com:80 1.2.3.4:80"},
		{"api.example.com:443", "api.example.com:443", "api.example.com:80 api.example.com:4430"},
		{"*.example.com", "example.com:1 a.example.com:80 a.b.example.com:80", "evilexample.com:80 example.com.evil.test:80 com:80 example.org:80"},
		{"*.example.com:8443", "x.example.com:8443", "x.example.com:443"},
		{"*", "example.com:80 8.8.8.8:53 [2001:db8::1]:80 localhost:80", ""},
		{"*:443", "example.com:443", "example.com:80"},
		{"8.8.8.8", "8.8.8.8:1", "8.8.8.9:1 [::ffff:8.8.8.8]:1 a.8.8.8.8.test:1"},
		{"127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:80 localhost:8080 [::1]:8080 [::ffff:127.0.0.1]:8080"},
		{"[::1]:3000", "[::1]:3000 [0:0::1]:3000", "[::1]:80 [::2]:3000 127.0.0.1:3000"},
		{"[2001:DB8::1]", "[2001:db8:0::1]:5", "[2001:db8::2]:5"},
		{"EXAMPLE.com.", "example.com:80", "example.org:80"},
	} {
		g, err := parseGrant([]string{c.allow})
		if err != nil {
			t.Fatal(err)
		}
		for i, list := range []string{c.yes, c.no} {
			for text := range strings.FieldsSeq(list) {
				to, err := parseAuthority(text, 0)
				if err != nil {
					t.Errorf("%s: %v", text, err)
				}
				if _, granted, _ := g.match(to); granted != (i == 0) {
					t.Errorf("grant %s, target %s: granted is %v", c.allow, text, granted)
				}
			}
		}
	}
}

func TestMalformedHosts(t *testing.T) {
	for _, text := range []string{
		"", ".", ":80", "a..b", "-a.test", "a.test:", "a.test:0", "a.test:080", "a.test:65536", "a.test:+80", "a.test:8 0", "a.test:80:80",
		"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "017700000001", "1.2.3.4.5", "1.2.3.256", "1.2.3.4.", "1.2.3.04",
		"%31%32%37.0.0.1", "①②⑦.0.0.1", "allowed。test", "bücher.test", "a b.test", "a\tb", "a\x00.test", "a.test\r\n", "a/b", "a\\b", "a#b", "a?b", "u@a.test", "u:p@a.test",
		"::1", "[::1", "[]", "[[::1]]", "[[::1]", "[::1]x", "[::1]80", "[127.0.0.1]", "[fe80::1%eth0]", "[::g]", "*.1.2.3.4", "x.*", "*a.test", "**.test", "*.", "*.*.test",
		strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 127) + "test",
	} {
		if _, err := New(Options{Allow: []string{text}}); err == nil {
			t.Errorf("the entry %q was taken", text)
		}
		if to, err := parseAuthority(text, 80); err == nil {
			t.Errorf("the authority %q was read as %v", text, to)
		}
	}
	if _, err := parseAuthority("*", 80); err == nil {
		t.Error("* is no authority")
	}
}

func TestIsPublic(t *testing.T) {
	for want, list := range map[bool]string{
		true: `1.1.1.1 8.8.8.8 192.0.2.1 198.51.100.7 203.0.113.5 172.15.255.255 172.32.0.1 100.63.255.255 100.128.0.0 169.253.0.1 223.255.255.255
			2001:db8::1 2606:4700::1111 2a00:1450::1 3fff::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8`,
		false: `0.0.0.0 0.1.2.3 10.0.0.8 100.64.0.1 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.168.1.1
			198.18.0.1 198.19.255.255 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 168.63.129.16
			:: ::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 100::1 5f00::1 4000::1
			::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:10.0.0.1 ::127.0.0.1 ::7f00:1 ::ffff:0:7f00:1
			64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2002:a00:1::1 2001:0:7f00:1::1 2001:2::1`,
	} {
		for text := range strings.FieldsSeq(list) {
			if got := isPublic(netip.MustParseAddr(text)); got != want {
				t.Errorf("%s: public is %v", text, got)
			}
		}
	}
}

func TestRefusalListsFewHosts(t *testing.T) {
	g := grant{text: make([]string, 100)}
	for i := range g.text {
		g.text[i] = "a.test"
	}
	if text := g.String(); strings.Count(text, "a.test") != maxNamed || !strings.HasSuffix(text, "and 88 more") {
		t.Error(text)
	}
}

func TestInterfaceNetworks(t *testing.T) {
	all, err := interfaceNetworks()
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range all {
		if prefix.Addr().IsLoopback() {
			t.Errorf("loopback is among them: %v", prefix)
		}
	}
}

func BenchmarkInterfaceNetworks(b *testing.B) {
	for b.Loop() {
		_, _ = interfaceNetworks()
	}
}
