package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
)

// maxDials bounds the addresses of one name that are tried.
const maxDials = 8

// refusal is a request that goes no further. The reason is for the author of
// the capability; it holds nothing of the request but host and port.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, reason: fmt.Sprintf(format, args...)}
}

// route vets a target and returns the addresses that may be dialed for it. The
// error is a *refusal: 403 when the grant or an address forbids it, 502 when
// the name has no address.
func (p *Proxy) route(ctx context.Context, t target) ([]netip.Addr, *refusal) {
	named, granted, literal := p.grant.match(t)
	switch {
	case len(p.grant.rules) == 0:
		return nil, refuse(http.StatusForbidden, "%s cannot be reached: this capability has no hosts", t.host)
	case !named:
		return nil, refuse(http.StatusForbidden, "%s is not among the hosts of this capability (%s)", t.host, p.grant)
	case !granted:
		return nil, refuse(http.StatusForbidden, "port %d of %s is not among the hosts of this capability (%s)", t.port, t.host, p.grant)
	case literal:
		return []netip.Addr{t.addr}, nil
	}
	_, trusted, _ := p.trusted.match(t)
	if trusted && p.upstream(t) != nil {
		return []netip.Addr{viaUpstream}, nil
	}
	local, err := p.opt.Local()
	if err != nil {
		return nil, refuse(http.StatusBadGateway, "%s cannot be checked: the networks of this machine are not known", t.host)
	}
	if t.addr.IsValid() {
		return p.vet(t, []netip.Addr{t.addr}, local)
	}
	found, err := p.opt.Resolver.LookupNetIP(ctx, "ip", t.host+".")
	if err != nil && ctx.Err() != nil {
		return nil, refuse(http.StatusBadGateway, "the lookup of %s took too long", t.host)
	}
	if err != nil || len(found) == 0 {
		return nil, refuse(http.StatusBadGateway, "no address is known for %s", t.host)
	}
	if trusted {
		return unmapped(found), nil
	}
	return p.vet(t, found, local)
}

func unmapped(addrs []netip.Addr) []netip.Addr {
	out := make([]netip.Addr, len(addrs))
	for i, addr := range addrs {
		out[i] = addr.Unmap()
	}
	return out
}

// vet refuses a target when any of its addresses is not a public one.
func (p *Proxy) vet(t target, addrs []netip.Addr, local []netip.Prefix) ([]netip.Addr, *refusal) {
	vetted := make([]netip.Addr, 0, len(addrs))
	for _, addr := range addrs {
		addr = addr.Unmap()
		what := fmt.Sprintf("%s resolves to %s, which", t.host, addr)
		if t.addr.IsValid() {
			what = t.host
		}
		if !isPublic(addr) {
			return nil, refuse(http.StatusForbidden, "%s is not a public address", what)
		}
		if within(local, carried(addr)) {
			return nil, refuse(http.StatusForbidden, "%s is an address of this machine's own network", what)
		}
		if !slices.Contains(vetted, addr) {
			vetted = append(vetted, addr)
		}
	}
	return vetted, nil
}

// dial connects to the first of the vetted addresses that answers.
func (p *Proxy) dial(ctx context.Context, t target, vetted []netip.Addr) (net.Conn, netip.AddrPort, *refusal) {
	for _, addr := range vetted[:min(len(vetted), maxDials)] {
		at := netip.AddrPortFrom(addr, t.port)
		if addr == viaUpstream {
			conn, bad := p.dialUpstream(ctx, t)
			return conn, at, bad
		}
		conn, err := p.opt.Dial(ctx, "tcp", at.String())
		if err == nil {
			return conn, at, nil
		}
		if ctx.Err() != nil {
			return nil, at, refuse(http.StatusBadGateway, "%s did not answer in time", t)
		}
	}
	return nil, netip.AddrPort{}, refuse(http.StatusBadGateway, "%s cannot be reached: it takes no connection", t)
}
