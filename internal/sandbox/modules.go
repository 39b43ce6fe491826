package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tendril-agent/tendril/internal/egress"
	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

// Registries are where packages come from. Nil or empty fields are the public
// ones.
type Registries struct {
	NPM *url.URL
	JSR *url.URL
	// NPMAuth are the lines of an .npmrc that let us in there. No capability gets
	// to see them.
	NPMAuth []string
	// Proxy is the HTTP proxy that this machine needs for a host, nil for none.
	Proxy func(host string, port uint16) *url.URL
}

func (r Registries) withDefaults() Registries {
	if r.NPM == nil {
		r.NPM = &url.URL{Scheme: "https", Host: "registry.npmjs.org", Path: "/"}
	}
	if r.JSR == nil {
		r.JSR = &url.URL{Scheme: "https", Host: "jsr.io", Path: "/"}
	}
	return r
}

const (
	resolveTimeout = 120 * time.Second
	resolvedMB     = 512
	resolvedFiles  = 50_000
)

// modules is the read-only cache of the dependencies of one lock: a folder with
// what Deno keeps in its own as npm and remote. It is made whole or not at all.
type modules struct {
	dir  string
	lock *lockFile
	text []byte
	note cacheNote
}

// cacheNote is the file beside them.
type cacheNote struct {
	NPM    string `json:"npm"` // the registries they came from: Deno names its folders after these
	JSR    string `json:"jsr"`
	Digest string `json:"digest"` // of the folders, see treeDigest
}

const cacheNoteFile = "cache.json"

// moduleCache makes sure that the modules of a lock are fetched once, and were
// looked at once in this process.
type moduleCache struct {
	mu    sync.Mutex
	known map[string]*modules // by folder; what was verified
}

// Lock resolves the remote modules that a source imports, types included, and
// fetches them into the cache: nothing of them is run, and no lifecycle script
// ever is. The hosts are those that https: imports may come from, as host or
// host:port; the registries may always be asked.
//
// The result is a lock file in Deno's format, nil for a source without remote
// imports. What is wrong with a dependency is a [*DependencyError].
func (r *Runner) Lock(ctx context.Context, name string, source []byte, hosts []string) ([]byte, error) {
	m, err := r.fetch(ctx, name, source, nil, hosts)
	if err != nil || m == nil {
		return nil, err
	}
	return m.text, nil
}

// HoldsModules reports, as an error, why a source cannot use the modules of a
// lock. Those that the cache lacks are fetched, as the lock says.
func (r *Runner) HoldsModules(ctx context.Context, name string, source, lock []byte) error {
	_, err := r.modules(ctx, name, source, lock)
	return err
}

// RegistryHost is the host, with its port, that packages of a kind (npm, jsr) come
// from; "" for other kinds.
func (r *Runner) RegistryHost(kind string) string {
	from := r.Registries.withDefaults()
	switch kind {
	case "npm":
		return hostPort(from.NPM)
	case "jsr":
		return hostPort(from.JSR)
	}
	return ""
}

// modules returns the cached modules of a lock, nil for none.
func (r *Runner) modules(ctx context.Context, name string, source, lock []byte) (*modules, error) {
	if len(lock) == 0 {
		return nil, nil
	}
	lock = canonicalLock(lock)
	parsed, err := parseLock(lock)
	if err != nil {
		return nil, &DependencyError{Unusable, err.Error()}
	}
	if m := r.cached(lock, parsed); m != nil {
		return m, nil
	}
	var hosts []string
	for address := range parsed.Remote {
		if u, err := url.Parse(address); err == nil && u.Scheme == "https" {
			hosts = append(hosts, u.Host)
		}
	}
	return r.fetch(ctx, name, source, lock, hosts)
}

// cached returns the modules of a lock that are there and whole.
func (r *Runner) cached(text []byte, lock *lockFile) *modules {
	dir := r.modulesDir(text)
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	if m := r.cache.known[dir]; m != nil {
		if _, err := os.Stat(filepath.Join(dir, cacheNoteFile)); err == nil {
			return m
		}
		delete(r.cache.known, dir)
	}
	m := &modules{dir: dir, lock: lock, text: text}
	raw, err := os.ReadFile(filepath.Join(dir, cacheNoteFile))
	if err != nil || json.Unmarshal(raw, &m.note) != nil {
		return nil
	}
	if found, err := treeDigest(dir); err != nil || found != m.note.Digest {
		_ = removeAll(dir) // damaged: it is fetched again
		return nil
	}
	r.cache.keep(m)
	return m
}

func (c *moduleCache) keep(m *modules) {
	if c.known == nil {
		c.known = map[string]*modules{}
	}
	c.known[m.dir] = m
}

// modulesDir is the folder of a lock's modules.
func (r *Runner) modulesDir(lock []byte) string {
	sum := sha256.Sum256(lock)
	return filepath.Join(r.Home, "modules", hex.EncodeToString(sum[:16]))
}

// fetch resolves the imports of a source, exactly as lock says unless that is
// nil, and puts the modules into the cache.
func (r *Runner) fetch(ctx context.Context, name string, source, lock []byte, hosts []string) (*modules, error) {
	if r.Home == "" {
		return nil, errors.New("remote modules need a folder of ours to be kept in")
	}
	base := filepath.Join(r.Home, "modules")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of remote modules: %w", err)
	}
	dir, err := os.MkdirTemp(base, ".new-")
	if err != nil {
		return nil, fmt.Errorf("make the folder of remote modules: %w", err)
	}
	defer removeAll(dir) //nolint:errcheck // it was moved, or a sweep takes it
	s, err := r.stageCheck(name, source, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f := &fetching{Runner: r, stage: s, dir: dir, frozen: lock != nil, hosts: hosts, from: r.Registries.withDefaults()}
	if err := f.prepare(lock); err != nil {
		return nil, fmt.Errorf("fetch the dependencies of %s: %w", name, err)
	}
	if err := f.run(ctx); err != nil {
		return nil, err
	}
	return r.publish(f)
}

// publish moves what was fetched to its place.
func (r *Runner) publish(f *fetching) (*modules, error) {
	text, err := os.ReadFile(f.stage.lock())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text = canonicalLock(text)
	lock, err := parseLock(text)
	if err != nil {
		return nil, &DependencyError{Unusable, err.Error()}
	}
	if len(lock.NPM)+len(lock.JSR)+len(lock.Remote) == 0 {
		return nil, nil
	}
	if err := f.tidy(); err != nil {
		return nil, err
	}
	m := &modules{dir: r.modulesDir(text), lock: lock, text: text, note: cacheNote{NPM: f.from.NPM.String(), JSR: f.from.JSR.String()}}
	if m.note.Digest, err = treeDigest(f.dir); err != nil {
		return nil, err
	}
	raw, _ := json.Marshal(m.note) // strings
	if err := os.WriteFile(filepath.Join(f.dir, cacheNoteFile), raw, 0o600); err != nil {
		return nil, err
	}
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	if err := os.Rename(f.dir, m.dir); err != nil {
		// Another process may have been faster; else what is there is damaged.
		if found, same := treeDigest(m.dir); same != nil || found != m.note.Digest {
			_ = removeAll(m.dir)
			if err := os.Rename(f.dir, m.dir); err != nil {
				return nil, fmt.Errorf("keep the dependencies: %w", err)
			}
		}
	}
	r.cache.keep(m)
	return m, nil
}

// canonicalLock writes a lock without blanks, its members sorted, so that the same
// one has the same folder.
func canonicalLock(text []byte) []byte {
	var v map[string]any
	if json.Unmarshal(text, &v) != nil {
		return text
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return out
}

// treeDigest is the SHA-256, in hexadecimal, of the paths and contents of the
// files below the folders npm and remote of dir.
func treeDigest(dir string) (string, error) {
	h := sha256.New()
	for _, part := range moduleFolders {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, entry fs.DirEntry, err error) error {
			if err != nil && errors.Is(err, fs.ErrNotExist) && entry == nil {
				return fs.SkipDir
			}
			if err != nil || entry.IsDir() {
				return err
			}
			if !entry.Type().IsRegular() {
				return fmt.Errorf("%s is no regular file", path)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, path) // below it
			sum := sha256.Sum256(content)
			fmt.Fprintf(h, "%s\x00%x\n", filepath.ToSlash(rel), sum)
			return nil
		})
		if err != nil && !errors.Is(err, fs.SkipDir) {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// moduleFolders are what we keep of Deno's own folder.
var moduleFolders = []string{"npm", "remote"}

// fetching is one resolution on its way.
type fetching struct {
	*Runner
	stage  *stage
	dir    string // Deno's own folder
	frozen bool
	hosts  []string
	from   Registries
}

// prepare writes what Deno needs to know.
func (f *fetching) prepare(lock []byte) error {
	if f.frozen {
		if err := os.WriteFile(f.stage.lock(), lock, 0o600); err != nil {
			return err
		}
	}
	lines := append([]string{"registry=" + f.from.NPM.String()}, f.from.NPMAuth...)
	if err := os.MkdirAll(f.stage.homeDir(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.stage.homeDir(), ".npmrc"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func (f *fetching) args() []string {
	args := []string{
		"cache", "--config=" + configPath(f.stage), "--node-modules-dir=none", "--lock=" + f.stage.lock(),
		"--frozen=" + map[bool]string{true: "true", false: "false"}[f.frozen],
	}
	imports := []string{hostPort(f.from.JSR)}
	for _, host := range f.hosts {
		if !strings.Contains(host, ":") {
			host += ":443"
		}
		imports = append(imports, host)
	}
	return append(args, "--allow-import="+strings.Join(imports, ","), fileURL(f.stage.source()))
}

// run lets Deno fetch, with an egress proxy that leads to the registries and the
// hosts of https: imports alone.
func (f *fetching) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	trusted := []string{hostPort(f.from.NPM), hostPort(f.from.JSR)}
	proxy, err := egress.New(egress.Options{
		Allow: append(slices.Clone(f.hosts), trusted...), Trusted: trusted, Upstream: f.from.Proxy, Resolver: f.Resolver, Dial: f.Dial,
	})
	if err != nil {
		return fmt.Errorf("fetch the dependencies of %s: %w", f.stage.name, err)
	}
	var out boundedBuffer
	state, err := f.deno(ctx, proxy, &out)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &DependencyError{Unreachable, fmt.Sprintf("the dependencies were not fetched within %s", resolveTimeout)}
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("fetch the dependencies of %s: %w", f.stage.name, err)
	case state.Success():
		return nil
	}
	return dependencyError(f.stage.hide(cleanText(out.Bytes())), proxy.Decisions())
}

// deno runs `deno cache`, in the operating system layer if that is in force.
func (f *fetching) deno(ctx context.Context, proxy *egress.Proxy, out *boundedBuffer) (*os.ProcessState, error) {
	env := []string{"NPM_CONFIG_REGISTRY=" + f.from.NPM.String(), "JSR_URL=" + f.from.JSR.String(), "HOME=" + f.stage.homeDir()}
	limits := Limits{RSSMB: 1024, WrittenMB: resolvedMB, FileMB: 256, Files: resolvedFiles}.WithDefaults()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	inside := func() (*os.ProcessState, error) {
		authorities, files, err := trusted(f.CAFile)
		if err != nil {
			return nil, err
		}
		places := slices.Concat(f.stage.places(limits), files, []jail.Mount{
			{Path: f.stage.denoDir(), Source: f.dir, Kind: jail.Write},
			{Path: filepath.Dir(f.stage.lock()), Kind: jail.Write},
			{Path: f.stage.homeDir(), Kind: jail.Read},
		})
		spec := f.spec(f.args(), slices.Concat(environment(f.stage), env, proxyEnvironment(), authorities), f.stage.root, places)
		spec.Limits, spec.Proxy = limits.kernel(), true
		entered := func(p *jail.Process) func() {
			finish := watch(p.Cmd.Process.Pid, limits, []string{f.dir}, stop)
			closeProxy := serve(ctx, proxy, p.Listener)
			return func() {
				finish()
				closeProxy()
			}
		}
		return newCell(f.Self, nil).run(order{ctx: ctx, spec: spec, entered: entered}, nil, out, out)
	}
	state, layer, err := f.inLayer(ctx, nil, inside)
	if !layer.On {
		state, err = f.outside(ctx, proxy, env, limits, stop, out)
	}
	var limit *limitError
	if errors.As(context.Cause(ctx), &limit) {
		return nil, &DependencyError{Unusable, "the dependencies are too large: fetching them " + limit.text}
	}
	return state, err
}

// outside does the same with Deno's own permissions alone.
func (f *fetching) outside(ctx context.Context, proxy *egress.Proxy, env []string, limits Limits, stop func(error), out *boundedBuffer) (*os.ProcessState, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer serve(ctx, proxy, listener)()
	cmd := exec.CommandContext(ctx, f.Deno.Path, f.args()...)
	cmd.Dir = f.stage.root
	address := "http://" + listener.Addr().String()
	cmd.Env = slices.Concat(environment(f.stage), env, []string{
		"DENO_DIR=" + f.dir, "HTTP_PROXY=" + address, "HTTPS_PROXY=" + address, "http_proxy=" + address, "https_proxy=" + address,
	})
	if f.CAFile != "" {
		cmd.Env = append(cmd.Env, "DENO_CERT="+f.CAFile)
	}
	cmd.Stdout, cmd.Stderr = out, out
	return runGroup(cmd, func(pid int) func() {
		finish := watch(pid, limits, []string{f.dir}, stop)
		return func() { finish() }
	})
}

// tidy leaves of Deno's folder what a run needs, read-only, and refuses anything
// but files and folders.
func (f *fetching) tidy() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !slices.Contains(moduleFolders, entry.Name()) {
			if err := removeAll(filepath.Join(f.dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return filepath.WalkDir(f.dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.Chmod(path, 0o755) // who runs it may be another user; the folder above is closed
		case entry.Type().IsRegular():
			return os.Chmod(path, 0o444)
		}
		return &DependencyError{Forbidden, "a dependency holds a link or a device, which is not taken"}
	})
}

// flags are those of a run that has these modules.
func (m *modules) flags(s *stage) []string {
	if m == nil {
		return []string{"--no-lock", "--no-remote", "--no-npm", "--deny-import"}
	}
	flags := []string{"--lock=" + s.lock(), "--frozen"}
	jsr, err := url.Parse(m.note.JSR)
	if err != nil {
		jsr = Registries{}.withDefaults().JSR
	}
	if len(m.lock.NPM) == 0 {
		flags = append(flags, "--no-npm")
	}
	if hosts := m.lock.importHosts(jsr); len(hosts) > 0 {
		return append(flags, "--allow-import="+strings.Join(hosts, ","))
	}
	return append(flags, "--deny-import")
}

// environment leads Deno to the folders of the registries.
func (m *modules) environment() []string {
	if m == nil {
		return nil
	}
	return []string{"NPM_CONFIG_REGISTRY=" + m.note.NPM, "JSR_URL=" + m.note.JSR}
}

// places show the modules inside of Deno's own folder.
func (m *modules) places(s *stage) []jail.Mount {
	if m == nil {
		return nil
	}
	var places []jail.Mount
	for _, part := range moduleFolders {
		if real, err := filepath.EvalSymlinks(filepath.Join(m.dir, part)); err == nil {
			places = append(places, jail.Mount{Path: filepath.Join(s.denoDir(), part), Source: real, Kind: jail.Read})
		}
	}
	return places
}

// folders are where a package finds its own files.
func (m *modules) folders(s *stage) []string {
	if m == nil || len(m.lock.NPM) == 0 {
		return nil
	}
	return []string{filepath.Join(s.denoDir(), "npm")}
}

// addModules writes the lock of a run into its stage.
func (s *stage) addModules(m *modules) error {
	s.modules = m
	if m == nil {
		return nil
	}
	return os.WriteFile(s.lock(), m.text, 0o400)
}

// copyModules puts them into the stage, for a run without the operating system
// layer: there, it could change the cache of others.
func (s *stage) copyModules() error {
	if s.modules == nil {
		return nil
	}
	for _, part := range moduleFolders {
		from := filepath.Join(s.modules.dir, part)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if err := os.CopyFS(filepath.Join(s.denoDir(), part), os.DirFS(from)); err != nil {
			return fmt.Errorf("copy the dependencies of the run: %w", err)
		}
	}
	return nil
}
