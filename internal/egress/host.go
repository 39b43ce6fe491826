package egress

import (
	"errors"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var (
	labelPattern   = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	numericPattern = regexp.MustCompile(`^(?:[0-9]+|0x[0-9a-f]*)$`)
)

// target is where a request wants to go.
type target struct {
	host string     // lower case, without a trailing dot; an IPv6 address has no brackets
	addr netip.Addr // set when the host is an address
	port uint16
}

func (t target) String() string {
	return net.JoinHostPort(t.host, strconv.Itoa(int(t.port)))
}

// header is the value of a Host header for the target.
func (t target) header() string {
	host := t.host
	if t.addr.Is6() {
		host = "[" + host + "]"
	}
	if t.port == 80 {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.port))
}

// parseAuthority reads host or host:port. Without a port it takes fallback; a
// fallback of 0 means that a port must be there. The errors do not repeat the
// text: it may hold a password.
func parseAuthority(text string, fallback uint16) (target, error) {
	host, port, err := splitPort(text)
	if err != nil {
		return target{}, err
	}
	if port == 0 {
		port = fallback
	}
	if port == 0 {
		return target{}, errors.New("it has no port")
	}
	name, addr, err := parseHost(host)
	if err != nil {
		return target{}, err
	}
	return target{host: name, addr: addr, port: port}, nil
}

// splitPort returns port 0 when there is none.
func splitPort(text string) (host string, port uint16, err error) {
	var digits string
	var found bool
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return "", 0, errors.New("a bracket is not closed")
		}
		host = text[:end+1]
		if rest := text[end+1:]; rest != "" {
			if rest[0] != ':' {
				return "", 0, errors.New("after the bracket comes something other than a port")
			}
			digits, found = rest[1:], true
		}
	} else {
		host, digits, found = strings.Cut(text, ":")
	}
	if !found {
		return host, 0, nil
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 || digits[0] < '1' || digits[0] > '9' {
		return "", 0, errors.New("its port is not a number from 1 to 65535")
	}
	return host, uint16(n), nil
}

// parseHost reads a name in ASCII, an address of four decimal numbers, or an
// IPv6 address in brackets. Other spellings of addresses are there to get past
// checks like this one.
func parseHost(text string) (string, netip.Addr, error) {
	if strings.HasPrefix(text, "[") {
		addr, err := netip.ParseAddr(strings.TrimSuffix(text[1:], "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", netip.Addr{}, errors.New("in the brackets is no IPv6 address")
		}
		return addr.String(), addr, nil
	}
	for i := range len(text) {
		if text[i] >= 0x80 {
			return "", netip.Addr{}, errors.New("its host is not ASCII; international names are written as xn--…")
		}
	}
	lower := strings.ToLower(text)
	name := strings.TrimSuffix(lower, ".")
	if name == "" {
		return "", netip.Addr{}, errors.New("it has no host")
	}
	if len(name) > 253 {
		return "", netip.Addr{}, errors.New("its host is longer than a name can be")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !labelPattern.MatchString(label) {
			return "", netip.Addr{}, errors.New("its host is not a host name")
		}
	}
	if numericPattern.MatchString(labels[len(labels)-1]) {
		addr, err := netip.ParseAddr(lower)
		if err != nil || !addr.Is4() {
			return "", netip.Addr{}, errors.New("its host is neither a name nor an address of four decimal numbers")
		}
		return addr.String(), addr, nil
	}
	return name, netip.Addr{}, nil
}
