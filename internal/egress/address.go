package egress

import (
	"net"
	"net/netip"
)

// closed4 are the IPv4 ranges that are not public. Those for documentation
// (192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24) count as public.
var closed4 = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
	"172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15",
	"224.0.0.0/4", "240.0.0.0/4",
	"192.88.99.0/24",   // relays from 6to4
	"168.63.129.16/32", // a cloud's metadata service at a public address
)

// open6 is where public IPv6 addresses are; closed6 are the ranges in it that
// are not: protocol assignments with Teredo, and 6to4, which carries any IPv4
// address. Everything outside open6 is closed: unspecified, loopback,
// IPv4-compatible, unique-local, link-local, site-local, multicast.
var (
	open6   = netip.MustParsePrefix("2000::/3")
	closed6 = prefixes("2001::/23", "2002::/16")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// isPublic says whether an address is one of the public internet. An address
// that carries an IPv4 address (mapped, NAT64) is what it carries.
func isPublic(addr netip.Addr) bool {
	addr = carried(addr)
	if addr.Is4() {
		return !within(closed4, addr)
	}
	return addr.Zone() == "" && open6.Contains(addr) && !within(closed6, addr)
}

// carried takes the IPv4 address out of an IPv6 address that stands for it.
func carried(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if nat64.Contains(addr) {
		raw := addr.As16()
		return netip.AddrFrom4([4]byte(raw[12:]))
	}
	return addr
}

func within(ranges []netip.Prefix, addr netip.Addr) bool {
	for _, prefix := range ranges {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// interfaceNetworks returns the networks of this machine's interfaces except
// loopback. Behind a firewall they are private even when their addresses are
// public ones, as is usual with IPv6.
func interfaceNetworks() ([]netip.Prefix, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var all []netip.Prefix
	for _, each := range interfaces {
		if each.Flags&net.FlagLoopback != 0 || each.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := each.Addrs()
		if err != nil {
			return nil, err
		}
		for _, addr := range addrs {
			if prefix, err := netip.ParsePrefix(addr.String()); err == nil {
				all = append(all, prefix.Masked())
			}
		}
	}
	return all, nil
}
