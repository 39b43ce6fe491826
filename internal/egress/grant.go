package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// maxNamed bounds the entries that a refusal lists.
const maxNamed = 12

// rule is one entry of a grant. any stands for *, deep for *.host.
type rule struct {
	any, deep bool
	host      string
	addr      netip.Addr
	port      uint16 // 0: every port
}

type grant struct {
	rules []rule
	text  []string
}

func parseGrant(entries []string) (grant, error) {
	granted := grant{text: entries}
	for _, entry := range entries {
		r, err := parseRule(entry)
		if err != nil {
			return grant{}, fmt.Errorf("the host %q cannot be granted: %w", entry, err)
		}
		granted.rules = append(granted.rules, r)
	}
	return granted, nil
}

func parseRule(entry string) (rule, error) {
	host, port, err := splitPort(entry)
	if err != nil {
		return rule{}, err
	}
	if host == "*" {
		return rule{any: true, port: port}, nil
	}
	bare, deep := strings.CutPrefix(host, "*.")
	name, addr, err := parseHost(bare)
	if err != nil {
		return rule{}, err
	}
	if deep && addr.IsValid() {
		return rule{}, fmt.Errorf("an address has no names below it")
	}
	return rule{deep: deep, host: name, addr: addr, port: port}, nil
}

// match says whether the host is granted on any port at all, whether it is on
// this one, and whether that is because this very address was granted.
func (g grant) match(t target) (host, granted, literal bool) {
	for _, r := range g.rules {
		if !r.names(t) {
			continue
		}
		host = true
		if r.port == 0 || r.port == t.port {
			granted = true
			literal = literal || r.addr.IsValid()
		}
	}
	return host, granted, literal
}

func (r rule) names(t target) bool {
	switch {
	case r.any:
		return true
	case r.addr.IsValid() || t.addr.IsValid():
		return r.addr == t.addr
	case r.deep && strings.HasSuffix(t.host, "."+r.host):
		return true
	}
	return r.host == t.host
}

// String lists the entries for a person.
func (g grant) String() string {
	if len(g.text) <= maxNamed {
		return strings.Join(g.text, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(g.text[:maxNamed], ", "), len(g.text)-maxNamed)
}
