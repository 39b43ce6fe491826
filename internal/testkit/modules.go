package testkit

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // npm's older hash
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	stdmaps "maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Modules is a server of npm packages (below /npm/), jsr packages (below /jsr/)
// and plain modules (below /), in the public wire formats. What it serves can be
// changed at any time, as a registry that turns hostile would.
type Modules struct {
	Server *httptest.Server

	mu    sync.Mutex
	npm   map[string]map[string]*Package
	jsr   map[string]map[string]map[string]string
	files map[string]string
	asked []string
	down  bool
	auth  string
}

// Package is one version of an npm package.
type Package struct {
	Version      string
	Published    time.Time         // a year ago when zero
	Files        map[string]string // by path; package.json is made
	Dependencies map[string]string
	Scripts      map[string]string
	Main         string // mod.js when empty
	Integrity    string // what is claimed; right when empty
}

// NewModules starts the server. With a certificate it speaks https.
func NewModules(t testing.TB, certificate *tls.Certificate) *Modules {
	m := &Modules{npm: map[string]map[string]*Package{}, jsr: map[string]map[string]map[string]string{}, files: map[string]string{}}
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(m.serve))
	if certificate != nil {
		m.Server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		m.Server.StartTLS()
	} else {
		m.Server.Start()
	}
	t.Cleanup(m.Server.Close)
	return m
}

// NPM and JSR are the addresses of the registries.
func (m *Modules) NPM() *url.URL { return m.at("/npm/") }

// JSR is the address of the jsr registry.
func (m *Modules) JSR() *url.URL { return m.at("/jsr/") }

func (m *Modules) at(path string) *url.URL {
	u, _ := url.Parse(m.Server.URL + path) // the server's own
	return u
}

// Publish offers a version of an npm package.
func (m *Modules) Publish(name string, p Package) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.npm[name] == nil {
		m.npm[name] = map[string]*Package{}
	}
	m.npm[name][p.Version] = &p
}

// PublishJSR offers a version of a jsr package, with ./mod.ts as its export.
func (m *Modules) PublishJSR(name, version string, files map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jsr[name] == nil {
		m.jsr[name] = map[string]map[string]string{}
	}
	m.jsr[name][version] = files
}

// Put serves a plain module at a path. A text that begins with "-> " is the
// address of a redirect.
func (m *Modules) Put(path, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[path] = text
}

// Down makes the server answer nothing but errors.
func (m *Modules) Down(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// RequireAuth lets in only who sends this Authorization header.
func (m *Modules) RequireAuth(header string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.auth = header
}

// Asked returns the paths that were asked for since the last call.
func (m *Modules) Asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.asked
	m.asked = nil
	return asked
}

func (m *Modules) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r.URL.Path)
	if m.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	if m.auth != "" && r.Header.Get("Authorization") != m.auth {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/npm/"); ok {
		m.serveNPM(w, r, rest)
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/jsr/"); ok {
		m.serveJSR(w, r, rest)
		return
	}
	text, ok := m.files[r.URL.Path]
	if to, redirect := strings.CutPrefix(text, "-> "); redirect {
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/typescript")
	fmt.Fprint(w, text)
}

func (m *Modules) serveNPM(w http.ResponseWriter, r *http.Request, rest string) {
	name, file, isTarball := strings.Cut(rest, "/-/")
	versions := m.npm[name]
	if versions == nil {
		http.NotFound(w, r)
		return
	}
	if isTarball {
		for _, p := range versions {
			if file == p.Version+".tgz" {
				_, _ = w.Write(p.tarball(name))
				return
			}
		}
		http.NotFound(w, r)
		return
	}
	listed, times, latest := map[string]any{}, map[string]string{}, ""
	for _, version := range slices.Sorted(stdmaps.Keys(versions)) {
		p := versions[version]
		sum := sha512.Sum512(p.tarball(name))
		old := sha1.Sum(p.tarball(name))
		integrity := p.Integrity
		if integrity == "" {
			integrity = "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
		}
		listed[version] = map[string]any{
			"name": name, "version": version, "dependencies": p.Dependencies, "scripts": p.Scripts, "hasInstallScript": len(p.Scripts) > 0,
			"dist": map[string]any{
				"tarball": m.Server.URL + "/npm/" + name + "/-/" + version + ".tgz", "integrity": integrity, "shasum": hex.EncodeToString(old[:]),
			},
		}
		published := p.Published
		if published.IsZero() {
			published = time.Now().AddDate(-1, 0, 0)
		}
		times[version] = published.UTC().Format(time.RFC3339)
		latest = version
	}
	writeAsJSON(w, map[string]any{"name": name, "dist-tags": map[string]string{"latest": latest}, "versions": listed, "time": times})
}

func writeAsJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// tarball packs the files the same way every time.
func (p *Package) tarball(name string) []byte {
	main := p.Main
	if main == "" {
		main = "mod.js"
	}
	manifest, _ := json.Marshal(map[string]any{
		"name": name, "version": p.Version, "type": "module", "main": main, "dependencies": p.Dependencies, "scripts": p.Scripts,
	})
	files := map[string]string{"package.json": string(manifest)}
	stdmaps.Copy(files, p.Files)
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(stdmaps.Keys(files)) {
		_ = archive.WriteHeader(&tar.Header{Name: "package/" + path, Mode: 0o644, Size: int64(len(files[path])), Typeflag: tar.TypeReg})
		_, _ = archive.Write([]byte(files[path]))
	}
	_ = archive.Close()
	_ = zipped.Close()
	return out.Bytes()
}

func (m *Modules) serveJSR(w http.ResponseWriter, r *http.Request, rest string) {
	parts := strings.SplitN(rest, "/", 4)
	if len(parts) < 3 {
		http.NotFound(w, r)
		return
	}
	name := parts[0] + "/" + parts[1]
	versions := m.jsr[name]
	switch version, isMeta := strings.CutSuffix(parts[2], "_meta.json"); {
	case versions == nil:
		http.NotFound(w, r)
	case parts[2] == "meta.json":
		listed := map[string]any{}
		for version := range versions {
			listed[version] = map[string]any{"createdAt": time.Now().AddDate(-1, 0, 0).UTC().Format(time.RFC3339)}
		}
		scope, bare, _ := strings.Cut(name, "/")
		writeAsJSON(w, map[string]any{"scope": strings.TrimPrefix(scope, "@"), "name": bare, "versions": listed})
	case isMeta && versions[version] != nil:
		manifest := map[string]any{}
		for path, text := range versions[version] {
			manifest[path] = map[string]any{"size": len(text), "checksum": fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(text)))}
		}
		writeAsJSON(w, map[string]any{"manifest": manifest, "exports": map[string]string{".": "./mod.ts"}})
	case len(parts) == 4 && versions[parts[2]]["/"+parts[3]] != "":
		w.Header().Set("Content-Type", "text/typescript")
		fmt.Fprint(w, versions[parts[2]]["/"+parts[3]])
	default:
		http.NotFound(w, r)
	}
}
