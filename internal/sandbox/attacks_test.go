package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tendril-agent/tendril/internal/egress"
	"github.com/tendril-agent/tendril/internal/sandbox/jail"
	"github.com/tendril-agent/tendril/internal/testkit"
)

const secret = "SECRET-TOKEN-5f1c"

// fixture is the place that the programs of testdata/attacks attack: a
// workspace with planted links, a folder beside it, a home, and a server on
// loopback that counts its visitors.
type fixture struct {
	ws, outside, home string
	net               *internet
	server            *httptest.Server
	hits              atomic.Int64
	runner            *Runner
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{ws: filepath.Join(root, "ws"), outside: filepath.Join(root, "outside"), home: filepath.Join(root, "home")}
	for path, text := range map[string]string{
		"ws/data.txt": "workspace-data\n", "ws/sub/a.txt": "a\n", "ws/.env": "PLANTED=" + secret + "\n",
		"ws/tools/index.json": `{"version":"1.0.0","capabilities":[]}`, "ws/tools/helper.ts": "export const x = 1;\n",
		"outside/secret.txt": secret + "\n", "outside/secret.json": `{"key":"` + secret + `"}`,
		"outside/secret.ts":  "export const key = \"" + secret + "\";\nexport default key;\n",
		"outside/notcode.ts": secret + " is not = code\n", "outside/secret_noext": secret + "\n",
		"outside/secret.env": "KEY=" + secret + "\n", "outside/secret_worker.ts": "postMessage(\"" + secret + "\")\n",
		"outside/hard.txt": "hard\n", "home/.bashrc": "# bashrc\n", "home/.tendril/config.json": `{"key":"` + secret + `"}`,
	} {
		f.write(t, filepath.Join(root, path), text)
	}
	for link, target := range map[string]string{
		"sub/inner_link": "../../outside/secret.txt", "link_out": "../outside/secret.txt", "linkdir_out": f.outside,
		"link_json": "../outside/secret.json", "chain1": "link_out", "linktools": "tools",
	} {
		if err := os.Symlink(target, filepath.Join(f.ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.hits.Add(1)
		fmt.Fprintln(w, secret)
	}))
	t.Cleanup(f.server.Close)
	f.runner = &Runner{Self: selfForTests(), Deno: Deno{Path: testkit.Deno(t)}, Home: filepath.Join(f.home, ".tendril")}
	return f
}

func (f *fixture) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// plant puts a hostile configuration into the workspace.
func (f *fixture) plant(t *testing.T, kind string) {
	t.Helper()
	evil := "export default 'planted ' + 'code';\n"
	files := map[string]map[string]string{
		"denojson": {"deno.json": `{"imports":{"planted-lib":"./evil.ts"},"unstable":["kv","cron"],"permissions":{"default":{"read":true}}}`,
			"evil.ts": evil},
		"toolsdenojson": {"tools/deno.json": `{"imports":{"planted-lib":"./evil.ts"}}`, "tools/evil.ts": evil},
		"badjson":       {"deno.json": "{ not json"},
		"badlock":       {"deno.json": "{}", "deno.lock": "garbage"},
		"byonm": {"package.json": `{"dependencies":{"evil-pkg":"1","tendril-mock-hello":"1"}}`,
			"node_modules/evil-pkg/package.json":           `{"name":"evil-pkg","version":"1.0.0","main":"i.js"}`,
			"node_modules/evil-pkg/i.js":                   "module.exports = 'evil'",
			"node_modules/tendril-mock-hello/package.json": `{"name":"tendril-mock-hello","version":"1.0.0","main":"i.js"}`,
			"node_modules/tendril-mock-hello/i.js":         "module.exports = 'SHADOW'"},
		"npmrc": {"deno.json": "{}", ".npmrc": "registry=" + f.server.URL + "\n"},
		"links": {"deno.json": `{"links":["./p"],"nodeModulesDir":"auto"}`,
			"p/package.json": `{"name":"tendril-mock-hello","version":"1.0.0","main":"i.js"}`, "p/i.js": "module.exports = 'SHADOW'"},
	}
	for path, text := range files[kind] {
		f.write(t, filepath.Join(f.ws, path), text)
	}
}

// seal returns a hash over all that no program may change: names, modes and
// contents of the registry, the outside and the home.
func (f *fixture) seal(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	for _, root := range []string{filepath.Join(f.ws, "tools"), f.outside, f.home} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(sum, "%s %s\n", path, info.Mode())
			if info.Mode().IsRegular() {
				text, err := os.ReadFile(path)
				fmt.Fprintf(sum, "%x %v\n", text, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func (f *fixture) source(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(f.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	hostname, _ := os.Hostname()
	wasm, err := os.ReadFile("testdata/wasi.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.NewReplacer("{{WS}}", f.ws, "{{OUTSIDE}}", f.outside, "{{OUTSIDE_REL}}", strings.TrimPrefix(f.outside, "/"),
		"{{HOME}}", f.home, "{{PORT}}", port, "{{DENO_DIR}}", filepath.Join(f.home, "deno"), "{{RUN}}", "run1",
		"{{HOSTNAME}}", hostname, "{{NPM_HOST}}", "npm.test", "{{WASI_B64}}", base64.StdEncoding.EncodeToString(wasm)).Replace(string(raw)))
}

// notYet are the programs that need what does not exist yet.
func notYet() map[string]string {
	const content = "accepted: a file that a person hard-linked into the workspace is content of it"
	return map[string]string{"fs_hardlink_planted": content, "write_hardlink_planted": content}
}

// notWithAll adds what is started with a lock of its dependencies.
func notWithAll() map[string]string {
	skip := notYet()
	for _, name := range []string{"sc_npm_unpinned", "sc_npm_postinstall", "cfg_deno_lock"} {
		skip[name] = "needs its dependencies"
	}
	return skip
}

// notByFlags adds what Deno's permissions alone cannot do.
func notByFlags() map[string]string {
	const proxy = "needs a granted host, so the egress proxy and its hermetic network"
	skip := notYet()
	skip["env_sysinfo"] = "Deno tells the name of the machine"
	skip["write_setuid"] = "Deno may set any mode"
	for _, name := range []string{
		"net_dns_rebind_granted", "net_redirect_loopback", "net_redirect_other_host", "net_host_parser_tricks", "net_granted_host_private",
		"net_proxy_direct", "net_proxy_env_change", "net_sni_mismatch", "net_domain_fronting", "net_tls_downgrade",
	} {
		skip[name] = proxy
	}
	return skip
}

type attack struct {
	Name       string   `json:"name"`
	Class      string   `json:"class"`
	Grant      string   `json:"grant"`
	Checks     []string `json:"checks"`
	Plant      string   `json:"plant"`
	Phases     string   `json:"phases"`
	Args       string   `json:"args_json"`
	Deps       []string `json:"deps"`
	ExpectExit *int     `json:"expect_exit"`
	Limits     struct {
		Quick bool `json:"wall_expect_quick"`
		Wall  bool `json:"wall"`
	} `json:"limits"`
}

// hosts are what the program is granted. Those that attack addresses get any
// host, so that only the proxy is in their way.
func (a attack) hosts(port string) []string {
	switch {
	case a.Grant != "":
		return strings.Split(strings.ReplaceAll(a.Grant, "{{PORT}}", port), ",")
	case a.Class == "ssrf":
		return []string{AnyHost}
	}
	return nil
}

func readManifest(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// policies are the ways in which the corpus is run. Each layer is tried alone,
// so that it holds when the other one fails, and both together.
var policies = map[string]struct {
	run  func(*testing.T, *fixture, Job) Result
	skip func() map[string]string
	// weak is set where what a program says of itself, and limits of Deno's own,
	// do not count: with all of Deno's permissions it may do much that is no escape.
	weak bool
}{
	"everything": {run: func(t *testing.T, f *fixture, job Job) Result { return mustRun(t, f.runner, job) }, skip: notYet},
	"flags": {run: func(t *testing.T, f *fixture, job Job) Result {
		job.Grant.Net = nil // there is no hermetic network without the proxy
		return mustRun(t, &Runner{Deno: f.runner.Deno, Home: f.runner.Home}, job)
	}, skip: notByFlags},
	"os":   {run: runWithAllPermissions, skip: notWithAll, weak: true},
	"warm": {run: runWarm, skip: notYet},
}

// runWarm runs a program in a process that was started before it was asked for.
func runWarm(t *testing.T, f *fixture, job Job) Result {
	if layer := f.runner.Layer(t.Context()); !layer.On {
		t.Skip("no operating system layer here: ", layer.Why)
	}
	if temporary.Match(job.Source) && sameDevice(f.ws, os.TempDir()) {
		t.Skip("its temporary folder is in the workspace, where none is made before it is needed")
	}
	f.runner.Prepare(f.ws)
	t.Cleanup(f.runner.Close)
	f.runner.Warm(job)
	waitWarm(t, f.runner, job)
	result := mustRun(t, f.runner, job)
	if !result.Warm {
		t.Error("it was not run by a warm process")
	}
	return result
}

// runWithAllPermissions turns Deno's permissions off: only the operating system
// layer is left.
func runWithAllPermissions(t *testing.T, f *fixture, job Job) Result {
	t.Helper()
	job.Limits = job.Limits.WithDefaults()
	access, err := newAccess(t.Context(), job, f.runner.Home)
	if err != nil {
		t.Fatal(err)
	}
	stage, err := newStage(job.Name, job.Source)
	if err != nil {
		t.Fatal(err)
	}
	defer stage.Close()
	if layer := f.runner.Layer(t.Context()); !layer.On {
		t.Skip("no operating system layer here: ", layer.Why)
	}
	r := run{job: job, access: access, stage: stage, nonce: newNonce(), begin: time.Now()}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	defer time.AfterFunc(job.Limits.Timeout, func() { stop(errTimedOut) }).Stop()
	out := newOutput(job.Limits.OutputBytes, frameMarker(r.nonce), nil, stop, nil)
	args := []string{"run", "--allow-all", "--no-prompt", "--quiet", "--no-config", "--node-modules-dir=none", "--no-lock", "--no-remote", "--no-npm",
		"--v8-flags=--max-old-space-size=256", stage.bootstrap()}
	proxy, err := egress.New(egress.Options{Allow: job.Grant.Net, Resolver: f.net, Dial: f.net.dial})
	if err != nil {
		t.Fatal(err)
	}
	authorities, places, err := trusted("")
	if err != nil {
		t.Fatal(err)
	}
	env := append(append(environment(stage), proxyEnvironment()...), authorities...)
	spec := f.runner.spec(args, env, access.workspace, append(access.places(stage, job.Limits), places...))
	spec.Limits, spec.Proxy = job.Limits.kernel(), true
	entered := func(p *jail.Process) func() {
		ended, closeProxy := r.watched(p.Cmd.Process.Pid, stop), serve(ctx, proxy, p.Listener)
		return func() { ended(); closeProxy() }
	}
	state, err := newCell(f.runner.Self, nil).run(order{ctx: ctx, spec: spec, entered: entered}, r.input(), out.stdout(), out.stderr())
	if err != nil {
		t.Fatal(err)
	}
	return r.result(out, state, context.Cause(ctx))
}

func TestRunner_Attacks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs attack a Unix system")
	}
	var attacks []attack
	readManifest(t, "testdata/attacks/manifest.json", &attacks)
	for name, policy := range policies {
		skip := policy.skip()
		for _, a := range attacks {
			t.Run(name+"/"+a.Name, func(t *testing.T) {
				if reason := skip[a.Name]; reason != "" {
					t.Skip(reason)
				}
				t.Parallel()
				attackOnce(t, a, policy.run, policy.weak)
			})
		}
	}
}

// attackOnce runs one program and judges by what the host sees, not by what
// the program says.
func attackOnce(t *testing.T, a attack, run func(*testing.T, *fixture, Job) Result, weak bool) {
	f := newFixture(t)
	f.plant(t, a.Plant)
	_, port, _ := net.SplitHostPort(f.server.Listener.Addr().String())
	f.net = newInternet(t, a.hosts(port))
	f.runner.Resolver, f.runner.Dial = f.net, f.net.dial
	job := Job{
		Name: a.Name, Source: f.source(t, "testdata/attacks/"+a.Name+".ts"), Args: json.RawMessage(a.Args),
		Workspace: f.ws, Limits: Limits{Timeout: 12 * time.Second}, Grant: Grant{Net: f.net.granted},
	}
	if len(a.Deps) > 0 {
		f.lockMocks(t, &job, a.Phases == "evolve")
	}
	before := f.seal(t)
	if a.Limits.Wall {
		job.Limits.Timeout = 4 * time.Second // it runs until then
	}
	result := run(t, f, job)
	if a.Phases == "twice" {
		result = run(t, f, job)
	}
	all := result.Stdout + result.Stderr + result.Text + string(result.Value)
	switch {
	case !ranPattern.MatchString(all) && result.Stdout+result.Stderr == "" && result.Outcome != OK && !strings.HasSuffix(string(result.Outcome), "_limit"):
		t.Error("it did not run")
	case strings.Contains(all, secret), strings.Contains(all, "root:x:0:0"):
		t.Error("it read a secret")
	case !weak && slices.Contains(a.Checks, "marker") && escapedPattern.MatchString(result.Stdout):
		t.Error("it escaped")
	case len(f.net.escapes) > 0:
		t.Errorf("it got out: %q", f.net.escapes)
	case f.hits.Load() > 0:
		t.Error("it reached the server on loopback")
	case f.seal(t) != before:
		t.Error("it changed the registry, the outside or the home")
	case !weak && a.ExpectExit != nil && result.ExitCode != *a.ExpectExit:
		t.Errorf("exit code %d, want %d", result.ExitCode, *a.ExpectExit)
	case !weak && a.Limits.Quick && result.Outcome == TimedOut:
		t.Error("it had to be stopped")
	case strings.ContainsFunc(all, unwanted):
		t.Error("control characters in its output")
	}
	if t.Failed() {
		t.Logf("%+v", result)
	}
}

var (
	ranPattern     = regexp.MustCompile(`Requires \w+ access|npm specifiers were requested|remote specifier was requested|Module not found|Unstable API`)
	escapedPattern = regexp.MustCompile(`(?m)^ESCAPED`)
)

func mustRun(t *testing.T, runner *Runner, job Job) Result {
	t.Helper()
	result, err := runner.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(result.Text) == "" || !utf8.ValidString(result.Text) {
		t.Errorf("the text is blank or not UTF-8: %q", result.Text)
	}
	return result
}

// TestRunner_Honest runs programs that do nothing wrong under the same policy:
// a broken flag would stop these too.
func TestRunner_Honest(t *testing.T) {
	var programs []struct {
		Name       string         `json:"name"`
		Expect     *string        `json:"expect"`
		ExpectExit int            `json:"expect_exit"`
		ExpectErr  string         `json:"expect_err"`
		ExpectLen  int            `json:"expect_len"`
		Args       map[string]any `json:"args"`
		Net        []string       `json:"net"`
		Deps       int            `json:"deps"`
		Real       bool           `json:"real"` // they come from the public registry
		PrefixOK   bool           `json:"prefix_ok"`
	}
	readManifest(t, "testdata/honest/manifest.json", &programs)
	for _, p := range programs {
		t.Run(p.Name, func(t *testing.T) {
			if p.Name == "local_server" {
				t.Skip("needs a server of its own")
			}
			t.Parallel()
			f := newFixture(t)
			args, err := json.Marshal(p.Args)
			if err != nil || p.Args == nil {
				args = nil
			}
			f.net = newInternet(t, p.Net)
			f.runner.Resolver, f.runner.Dial = f.net, f.net.dial
			if len(p.Net) > 0 && !f.runner.Layer(t.Context()).On {
				t.Skip("needs the egress proxy")
			}
			job := Job{
				Name: p.Name, Source: f.source(t, "testdata/honest/"+p.Name+".ts"), Args: args, Workspace: f.ws, Grant: Grant{Net: p.Net},
			}
			switch {
			case p.Real:
				f.lockReal(t, &job)
			case p.Deps > 0:
				f.lockMocks(t, &job, false)
			}
			got := mustRun(t, f.runner, job)
			text := strings.TrimSpace(got.Stdout)
			switch {
			case got.ExitCode != p.ExpectExit:
				t.Errorf("exit code %d, want %d", got.ExitCode, p.ExpectExit)
			case p.Expect != nil && text != *p.Expect && !(p.PrefixOK && strings.HasPrefix(text, *p.Expect)):
				t.Errorf("got %q, want %q", text, *p.Expect)
			case !strings.Contains(got.Error, p.ExpectErr):
				t.Errorf("error %q, want %q in it", got.Error, p.ExpectErr)
			case p.ExpectLen > 0 && len(text) < p.ExpectLen-1:
				t.Errorf("%d bytes of output, want %d", len(text), p.ExpectLen)
			}
			if t.Failed() {
				t.Logf("%.3000s", got.Text)
			}
		})
	}
}

func TestRunner_PlantedConfiguration(t *testing.T) {
	for _, kind := range []string{"denojson", "toolsdenojson", "badjson", "badlock", "byonm", "npmrc", "links"} {
		f := newFixture(t)
		f.plant(t, kind)
		if got := mustRun(t, f.runner, Job{Name: "plain", Source: []byte(`console.log("ran")`), Workspace: f.ws}); got.Text != "ran" {
			t.Errorf("%s: %s", kind, got.Text)
		}
	}
}
