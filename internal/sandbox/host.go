package sandbox

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// closedRanges are the IPv4 addresses that are not public, as in Deno's
// --deny-net, which checks them against what a name resolves to as well. Ranges
// of IPv6 cannot be expressed there. The ranges for documentation count as
// public.
func closedRanges() []string {
	return []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
		"172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15",
		"224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", // a cloud's metadata service at a public address
	}
}

// AnyHost grants every public host. It needs the egress proxy.
const AnyHost = "*"

var (
	labelPattern   = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	numericPattern = regexp.MustCompile(`^(?:[0-9]+|0x[0-9a-f]*)$`)
)

// CheckHost says whether an entry of [Grant.Net] can be granted: host,
// host:port or *.host, with a public host, or [AnyHost]. "*.example.com" also grants
// example.com itself and any deeper name. The error tells what to write instead.
func CheckHost(entry string) error {
	if entry == AnyHost {
		return nil
	}
	host, err := splitHost(entry)
	if err != nil {
		return fmt.Errorf("the host %q cannot be granted: %w", entry, err)
	}
	if err := checkPublic(strings.TrimPrefix(host, "*.")); err != nil {
		return fmt.Errorf("the host %q cannot be granted: %w", entry, err)
	}
	return nil
}

// splitHost checks the form of an entry and returns its host in lower case.
func splitHost(entry string) (string, error) {
	switch {
	case entry == "":
		return "", fmt.Errorf("it is empty; write a host such as api.example.com")
	case strings.HasPrefix(entry, "*:"):
		return "", fmt.Errorf("any host is written * alone; better name the hosts")
	case strings.Contains(entry, "://"):
		return "", fmt.Errorf("write the host alone, without a scheme")
	case strings.ContainsAny(entry, "/?#"):
		return "", fmt.Errorf("write the host alone, without a path")
	case strings.Contains(entry, "@"):
		return "", fmt.Errorf("write the host alone, without a user")
	case strings.ContainsAny(entry, ", \t\r\n"):
		return "", fmt.Errorf("write one host per entry, without commas or blanks")
	case strings.ContainsAny(entry, "[]") || strings.Count(entry, ":") > 1:
		return "", fmt.Errorf("IPv6 addresses are not supported yet; name the host")
	}
	host, port, hasPort := strings.Cut(entry, ":")
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '0' {
			return "", fmt.Errorf("%q is not a port from 1 to 65535", port)
		}
	}
	return strings.ToLower(host), nil
}

// checkPublic refuses what is no name of the public internet.
func checkPublic(host string) error {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if !labelPattern.MatchString(label) {
			return fmt.Errorf("%q is not part of a host name; international names are written as xn--…, and * stands only at the start", label)
		}
	}
	last := labels[len(labels)-1]
	if numericPattern.MatchString(last) {
		return checkAddress(host)
	}
	switch {
	case last == "localhost", last == "local", last == "internal", last == "localdomain",
		last == "intranet", last == "lan", strings.HasSuffix(host, ".home.arpa"), host == "home.arpa":
		return fmt.Errorf("it is a name of this machine or of a local network")
	case len(labels) == 1:
		return fmt.Errorf("a name without a dot belongs to a local network")
	case len(host) > 253:
		return fmt.Errorf("it is longer than a host name can be")
	}
	return nil
}

// checkAddress takes dotted decimals alone: other spellings of an address are
// there to get past checks like this one.
func checkAddress(host string) error {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("it is neither a name nor an address of four decimal numbers")
	}
	for _, text := range closedRanges() {
		if netip.MustParsePrefix(text).Contains(addr) {
			return fmt.Errorf("the address is not a public one")
		}
	}
	return nil
}
