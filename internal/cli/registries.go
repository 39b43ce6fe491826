package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// registries are those of modules that npm and Deno are configured for: by
// NPM_CONFIG_REGISTRY and JSR_URL, or else the user's .npmrc, with what it says
// to be let in there, and the proxy of HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
// What a workspace says does not count.
func registries(getenv func(string) string, user string) (sandbox.Registries, error) {
	rc, err := readNPMRC(cmp.Or(getenv("NPM_CONFIG_USERCONFIG"), getenv("npm_config_userconfig"), filepath.Join(user, ".npmrc")), getenv)
	var r sandbox.Registries
	for _, where := range []struct {
		name, text string
		to         **url.URL
	}{
		{"NPM_CONFIG_REGISTRY", cmp.Or(getenv("NPM_CONFIG_REGISTRY"), getenv("npm_config_registry"), rc.registry), &r.NPM},
		{"JSR_URL", getenv("JSR_URL"), &r.JSR},
	} {
		if where.text == "" {
			continue
		}
		u, bad := registryURL(where.text)
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("%s (or the registry of .npmrc) is not used: %w", where.name, bad))
			continue
		}
		*where.to = u
	}
	if r.NPM != nil {
		r.NPMAuth = rc.authFor(r.NPM)
	} else {
		r.NPMAuth = rc.authFor(&url.URL{Host: "registry.npmjs.org"})
	}
	r.Proxy = machineProxy(getenv)
	return r, err
}

// registryURL reads the address of a registry. The error does not repeat it: it
// may hold a password.
func registryURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it is no http or https URL")
	case u.User != nil:
		return nil, errors.New("it holds a user or a password; write these into .npmrc, as in //host/:_authToken=…")
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// machineProxy is the proxy that the environment names for a host.
func machineProxy(getenv func(string) string) func(host string, port uint16) *url.URL {
	either := func(name string) string { return cmp.Or(getenv(name), getenv(strings.ToLower(name))) }
	config := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	find := config.ProxyFunc()
	return func(host string, port uint16) *url.URL {
		scheme := "https"
		if port == 80 {
			scheme = "http"
		}
		found, err := find(&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, strconv.Itoa(int(port)))})
		if err != nil || found == nil || found.Scheme != "http" && found.Scheme != "https" {
			return nil
		}
		return found
	}
}

// npmrc is what of a file .npmrc is about registries.
type npmrc struct {
	registry string
	auth     [][2]string // key and value
}

// maxNPMRC bounds the file.
const maxNPMRC = 64 << 10

var npmVariable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// readNPMRC reads a file; one that is missing is empty.
func readNPMRC(path string, getenv func(string) string) (npmrc, error) {
	var rc npmrc
	file, err := os.Open(path)
	if err != nil {
		return rc, nil //nolint:nilerr // npm itself goes on without it
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxNPMRC+1))
	if err != nil || len(data) > maxNPMRC {
		return rc, fmt.Errorf("%s is not used: it cannot be read, or has more than %d KiB", path, maxNPMRC>>10)
	}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		key, value = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"'`)
		if !ok || strings.HasPrefix(key, ";") || strings.HasPrefix(key, "#") {
			continue
		}
		value = npmVariable.ReplaceAllStringFunc(value, func(found string) string { return getenv(found[2 : len(found)-1]) })
		switch {
		case key == "registry":
			rc.registry = value
		case strings.HasPrefix(key, "//"):
			rc.auth = append(rc.auth, [2]string{key, value})
		}
	}
	return rc, nil
}

// authFor are the lines that let us into one registry.
func (rc npmrc) authFor(registry *url.URL) []string {
	var lines []string
	for _, pair := range rc.auth {
		place, _, _ := strings.Cut(strings.TrimPrefix(pair[0], "//"), "/")
		if place == registry.Host && !strings.ContainsAny(pair[1], "\r\n") {
			lines = append(lines, pair[0]+"="+pair[1])
		}
	}
	return lines
}
