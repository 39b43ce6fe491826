package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Dependency is a remote module that a lock holds.
type Dependency struct {
	Kind string `json:"kind"` // npm, jsr or https
	// Name is that of a package, or the URL of a module.
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // of a package
	// Integrity is the hash of its bytes as the lock has it: sha512-… in Base64 of
	// an npm package, SHA-256 in hexadecimal of the others.
	Integrity string `json:"integrity"`
	// Direct means that the source itself names it.
	Direct bool `json:"direct"`
}

// String is npm:zod@3.25.76, or the URL.
func (d Dependency) String() string {
	if d.Version == "" {
		return d.Name
	}
	return d.Kind + ":" + d.Name + "@" + d.Version
}

// lockFile is the part of Deno's lock file, version 5, that we read.
type lockFile struct {
	Version    string            `json:"version"`
	Specifiers map[string]string `json:"specifiers"`
	JSR        map[string]struct {
		Integrity string `json:"integrity"`
	} `json:"jsr"`
	NPM map[string]struct {
		Integrity string `json:"integrity"`
	} `json:"npm"`
	Redirects map[string]string `json:"redirects"`
	Remote    map[string]string `json:"remote"`
}

// maxLock bounds the text of a lock.
const maxLock = 1 << 20

func parseLock(lock []byte) (*lockFile, error) {
	if len(lock) > maxLock {
		return nil, fmt.Errorf("the lock of the dependencies has more than %d bytes", maxLock)
	}
	var l lockFile
	dec := json.NewDecoder(bytes.NewReader(lock))
	if err := dec.Decode(&l); err != nil {
		return nil, fmt.Errorf("the lock of the dependencies cannot be read: %w", err)
	}
	if l.Version != "5" {
		return nil, fmt.Errorf("the lock of the dependencies has the format version %.20q, and this Tendril knows 5", l.Version)
	}
	for name, p := range l.NPM {
		if !strings.HasPrefix(p.Integrity, "sha512-") && !strings.HasPrefix(p.Integrity, "sha256-") {
			return nil, fmt.Errorf("the lock of the dependencies has no safe hash for npm:%s", name)
		}
	}
	for name, p := range l.JSR {
		if len(p.Integrity) != 64 {
			return nil, fmt.Errorf("the lock of the dependencies has no hash for jsr:%s", name)
		}
	}
	for address, hash := range l.Remote {
		if len(hash) != 64 {
			return nil, fmt.Errorf("the lock of the dependencies has no hash for %s", address)
		}
	}
	return &l, nil
}

// Dependencies lists what a lock holds, sorted by kind and name. The error is
// about a text that is no lock.
func Dependencies(lock []byte) ([]Dependency, error) {
	if len(lock) == 0 {
		return nil, nil
	}
	l, err := parseLock(lock)
	if err != nil {
		return nil, err
	}
	direct := map[string]bool{}
	for specifier, version := range l.Specifiers {
		kind, rest, _ := strings.Cut(specifier, ":")
		name, _ := splitPackage(rest)
		direct[kind+":"+name+"@"+version] = true
	}
	var found []Dependency
	add := func(kind, key, integrity string) {
		name, version := splitPackage(key)
		found = append(found, Dependency{kind, name, plainVersion(version), integrity, direct[kind+":"+key]})
	}
	for key, p := range l.NPM {
		add("npm", key, p.Integrity)
	}
	for key, p := range l.JSR {
		add("jsr", key, p.Integrity)
	}
	for address, hash := range l.Remote {
		found = append(found, Dependency{Kind: "https", Name: address, Integrity: hash})
	}
	slices.SortFunc(found, func(a, b Dependency) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return found, nil
}

// Locks reports whether a lock holds what an import of the source names: a URL, or
// some version of a package.
func Locks(lock []byte, specifier string) bool {
	l, err := parseLock(lock)
	if err != nil {
		return false
	}
	kind, rest, _ := strings.Cut(specifier, ":")
	if kind == "https" {
		address, _, _ := strings.Cut(specifier, "#")
		_, remote := l.Remote[address]
		_, redirected := l.Redirects[address]
		return remote || redirected
	}
	name := packageName(rest)
	for known := range l.Specifiers {
		if k, r, _ := strings.Cut(known, ":"); k == kind && packageName(r) == name {
			return true
		}
	}
	return false
}

// packageName is @scope/name of /@scope/name@version/path.
func packageName(text string) string {
	text = strings.TrimPrefix(text, "/")
	parts := strings.SplitN(text, "/", 3)
	if strings.HasPrefix(text, "@") && len(parts) > 1 {
		text = parts[0] + "/" + parts[1]
	} else {
		text = parts[0]
	}
	name, _ := splitPackage(text)
	return name
}

// splitPackage takes @scope/name@version apart.
func splitPackage(text string) (name, version string) {
	at := strings.Index(text[min(1, len(text)):], "@")
	if at < 0 {
		return text, ""
	}
	return text[:at+1], text[at+2:]
}

// plainVersion is a version without the peers that npm's resolution chose.
func plainVersion(version string) string {
	plain, _, _ := strings.Cut(version, "_")
	return plain
}

// importHosts are the hosts, with ports, of modules in a lock that are imported by
// URL, those of jsr among them.
func (l *lockFile) importHosts(jsr *url.URL) []string {
	var hosts []string
	if len(l.JSR) > 0 {
		hosts = append(hosts, hostPort(jsr))
	}
	for _, addresses := range []map[string]string{l.Remote, l.Redirects} {
		for address := range addresses {
			if u, err := url.Parse(address); err == nil && u.Scheme == "https" {
				hosts = append(hosts, hostPort(u))
			}
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// hostPort is the host of a URL with its port.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return u.Host + ":" + map[string]string{"http": "80"}[u.Scheme] + map[string]string{"https": "443"}[u.Scheme]
}

// DependencyError says why the dependencies of a source cannot be had.
type DependencyError struct {
	// Problem is one of the constants below.
	Problem Problem
	Message string
}

// Problem is a kind of [DependencyError].
type Problem string

// What can be wrong with a dependency.
const (
	Unreachable Problem = "unreachable" // its registry or server does not answer
	NotFound    Problem = "not_found"   // there is no such package, version or module
	TooYoung    Problem = "too_young"   // it was published less than a day ago
	Changed     Problem = "changed"     // its bytes are not those of its hash
	Forbidden   Problem = "forbidden"   // it asks for another host, or a local file
	Unusable    Problem = "unusable"    // all else
)

func (e *DependencyError) Error() string { return e.Message }
