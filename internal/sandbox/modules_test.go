package sandbox

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// withModules is a runner whose registries are those of a local server.
func withModules(t *testing.T) (*Runner, *testkit.Modules) {
	runner, served := newRunner(t), testkit.NewModules(t, nil)
	runner.Registries = Registries{NPM: served.NPM(), JSR: served.JSR()}
	served.Publish("greet", testkit.Package{Version: "1.0.0", Dependencies: map[string]string{"words": "^1.0.0"}, Files: map[string]string{
		"mod.js":   `import { hello } from "words"; export function greet(name) { return hello + " " + name; }`,
		"mod.d.ts": `export function greet(name: string): string;`,
	}})
	served.Publish("words", testkit.Package{Version: "1.0.0", Files: map[string]string{"mod.js": `export const hello = "hello";`}})
	served.PublishJSR("@tools/upper", "1.0.0", map[string]string{"/mod.ts": `export function upper(s: string): string { return s.toUpperCase(); }`})
	return runner, served
}

const greets = `import { greet } from "npm:greet@^1.0.0";
export default (args: { name: string }) => greet(args.name);`

func TestLock_NPM(t *testing.T) {
	runner, served := withModules(t)
	lock, err := runner.Lock(t.Context(), "cap", []byte(greets), nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Dependencies(lock)
	if err != nil || len(found) != 2 || found[0].String() != "npm:greet@1.0.0" || !found[0].Direct || found[1].Direct || !strings.HasPrefix(found[1].Integrity, "sha512-") {
		t.Fatalf("got %+v, %v", found, err)
	}
	served.Down(true)
	served.Asked()
	job := Job{Name: "cap", Source: []byte(greets), Lock: lock, Args: []byte(`{"name":"you"}`), Workspace: t.TempDir()}
	for _, when := range []string{"in this process", "in another"} {
		if when == "in another" {
			runner.cache = moduleCache{}
		}
		result, err := runner.Run(t.Context(), job)
		if err != nil || result.Text != "hello you" {
			t.Fatalf("%s: %v %+v", when, err, result)
		}
	}
	if diagnostics, err := runner.Check(t.Context(), "cap", []byte(greets), lock, ""); err != nil || len(diagnostics) > 0 {
		t.Errorf("check: %v %v", diagnostics, err)
	}
	if asked := served.Asked(); len(asked) > 0 {
		t.Errorf("the registry was asked again: %v", asked)
	}
}

func TestLock_JSR(t *testing.T) {
	runner, served := withModules(t)
	source := []byte(`import { upper } from "jsr:@tools/upper@1"; export default () => upper("loud");`)
	lock, err := runner.Lock(t.Context(), "cap", source, nil)
	if err != nil {
		t.Fatal(err)
	}
	served.Down(true)
	result, err := runner.Run(t.Context(), Job{Name: "cap", Source: source, Lock: lock, Workspace: t.TempDir()})
	if err != nil || result.Text != "LOUD" {
		t.Fatalf("%v %+v", err, result)
	}
	if diagnostics, err := runner.Check(t.Context(), "cap", source, lock, ""); err != nil || len(diagnostics) > 0 {
		t.Errorf("check: %v %v", diagnostics, err)
	}
	wrong := []byte(`import { upper } from "jsr:@tools/upper@1"; export default () => upper(1);`)
	if diagnostics, err := runner.Check(t.Context(), "cap", wrong, lock, ""); err != nil || len(diagnostics) != 1 {
		t.Errorf("check: %v %v", diagnostics, err)
	}
}

// oneHost leads every name to one server.
type oneHost struct{ at string }

func (oneHost) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
}

func (o oneHost) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, o.at)
}

// withHTTPS is a runner with a server of modules at https://allowed.test.
func withHTTPS(t *testing.T) (*Runner, *testkit.Modules) {
	runner, served := newRunner(t), testkit.NewModules(t, &testCertificate)
	internet := oneHost{served.Server.Listener.Addr().String()}
	runner.Resolver, runner.Dial = internet, internet.dial
	return runner, served
}

func TestLock_HTTPS(t *testing.T) {
	runner, served := withHTTPS(t)
	served.Put("/twice.ts", `import { two } from "./two.ts"; export const twice = (n: number) => two * n;`)
	served.Put("/two.ts", `export const two = 2;`)
	source := []byte(`import { twice } from "https://allowed.test/twice.ts"; export default () => twice(21);`)
	lock, err := runner.Lock(t.Context(), "cap", source, []string{"allowed.test"})
	if err != nil {
		t.Fatal(err)
	}
	served.Down(true)
	result, err := runner.Run(t.Context(), Job{Name: "cap", Source: source, Lock: lock, Workspace: t.TempDir()})
	if err != nil || result.Text != "42" {
		t.Fatalf("%v %+v", err, result)
	}
}

func problemOf(err error) Problem {
	var found *DependencyError
	if errors.As(err, &found) {
		return found.Problem
	}
	return ""
}

func TestLock_Problems(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		prepare      func(*testkit.Modules)
		want         Problem
		says         string
	}{
		{"no package", `import "npm:missing@1"`, nil, NotFound, "missing"},
		{"no version", `import "npm:words@9"`, nil, NotFound, "words"},
		{"no jsr package", `import "jsr:@tools/none"`, nil, NotFound, "@tools/none"},
		{"no jsr version", `import "jsr:@tools/upper@9"`, nil, NotFound, "@tools/upper"},
		{"registry down", `import "npm:words"`, func(m *testkit.Modules) { m.Down(true) }, Unreachable, "words"},
		{"registry gone", `import "npm:words"`, func(m *testkit.Modules) { m.Server.Close() }, Unreachable, "words"},
		{"too young", `import "npm:young@1"`, func(m *testkit.Modules) {
			m.Publish("young", testkit.Package{Version: "1.0.0", Published: time.Now().Add(-time.Hour), Files: map[string]string{"mod.js": ""}})
		}, TooYoung, "young"},
		{"wrong hash", `import "npm:forged@1"`, func(m *testkit.Modules) {
			m.Publish("forged", testkit.Package{Version: "1.0.0", Integrity: "sha512-" + strings.Repeat("A", 86) + "==", Files: map[string]string{"mod.js": ""}})
		}, Changed, "forged"},
		{"another host", `import "https://other.example.net/x.ts"`, nil, Forbidden, "other.example.net"},
		{"needs local", `import "npm:words"; import "jsr:@tools/sly"`, func(m *testkit.Modules) {
			m.PublishJSR("@tools/sly", "1.0.0", map[string]string{"/mod.ts": `import "file:///etc/passwd";`})
		}, Forbidden, "file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runner, served := withModules(t)
			if tt.prepare != nil {
				tt.prepare(served)
			}
			lock, err := runner.Lock(t.Context(), "cap", []byte(tt.source), nil)
			if problemOf(err) != tt.want || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %q, lock %s: %v", problemOf(err), lock, err)
			}
			if err != nil && strings.Contains(err.Error(), runner.Home) {
				t.Errorf("the error tells a path: %v", err)
			}
			t.Logf("%v", err)
			if left, _ := filepath.Glob(filepath.Join(runner.Home, "modules", "*")); len(left) > 0 {
				t.Errorf("something was kept: %v", left)
			}
		})
	}
}

// A registry that turns hostile after the lock changes nothing that is cached,
// and what is fetched again must be what was locked.
func TestModules_HostileAfterTheLock(t *testing.T) {
	runner, served := withModules(t)
	lock, err := runner.Lock(t.Context(), "cap", []byte(greets), nil)
	if err != nil {
		t.Fatal(err)
	}
	served.Publish("words", testkit.Package{Version: "1.0.0", Files: map[string]string{"mod.js": `export const hello = "pwned";`}})
	served.Publish("words", testkit.Package{Version: "1.0.1", Files: map[string]string{"mod.js": `export const hello = "pwned";`}})
	job := Job{Name: "cap", Source: []byte(greets), Lock: lock, Args: []byte(`{"name":"you"}`), Workspace: t.TempDir()}
	if result, err := runner.Run(t.Context(), job); err != nil || result.Text != "hello you" {
		t.Fatalf("%v %+v", err, result)
	}
	t.Run("cache lost", func(t *testing.T) {
		fresh := newRunner(t)
		fresh.Registries = runner.Registries
		_, err := fresh.Run(t.Context(), job)
		if problemOf(err) != Changed || !strings.Contains(err.Error(), "words") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cache damaged", func(t *testing.T) {
		damaged := newRunner(t)
		damaged.Registries = runner.Registries
		if err := os.CopyFS(filepath.Join(damaged.Home, "modules"), os.DirFS(filepath.Join(runner.Home, "modules"))); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(damaged.Home, "modules", "*", "npm", "*", "npm", "words", "*", "mod.js"))
		if len(files) == 0 {
			files, _ = filepath.Glob(filepath.Join(damaged.Home, "modules", "*", "npm", "*", "words", "*", "mod.js"))
		}
		if len(files) != 1 {
			t.Fatalf("no file to damage: %v", files)
		}
		if err := errors.Join(os.Chmod(files[0], 0o600), os.WriteFile(files[0], []byte(`export const hello = "rot";`), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := damaged.Run(t.Context(), job); problemOf(err) != Changed {
			t.Errorf("got %v", err)
		}
	})
}

func TestModules_Undeclared(t *testing.T) {
	runner, _ := withModules(t)
	source := []byte(`import { greet } from "npm:greet@^1.0.0";
const load = (name: string) => new Function("name", "return import(name)")(name);
export default async (args: { name: string }) => greet((await load(args.name)).hello);`)
	lock, err := runner.Lock(t.Context(), "cap", source, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"npm:left-pad@1.3.0", "npm:words@1.0.0", "jsr:@tools/upper@1", "https://example.com/x.ts", "file:///etc/passwd"} {
		result, err := runner.Run(t.Context(), Job{Name: "cap", Source: source, Lock: lock, Args: []byte(`{"name":"` + name + `"}`), Workspace: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s", name, result.Text)
		if result.Outcome != Failed || !strings.HasPrefix(name, "file:") && !strings.Contains(result.Text, notLocked) || strings.Contains(result.Text, "--") {
			t.Errorf("%s: %+v", name, result)
		}
	}
}

// A dependency may read its own files, and may not write to them.
func TestModules_OwnFiles(t *testing.T) {
	runner, served := withModules(t)
	served.Publish("data", testkit.Package{Version: "1.0.0", Files: map[string]string{
		"mod.js": `import { readFileSync, writeFileSync } from "node:fs"; import { join } from "node:path";
const at = join(import.meta.dirname, "data.txt");
export const read = () => readFileSync(at, "utf8");
export const write = () => writeFileSync(at, "changed");`,
		"data.txt": "own data",
	}, Scripts: map[string]string{"postinstall": "touch /tmp/tendril-lifecycle-ran"}})
	source := []byte(`import { read, write } from "npm:data@1";
export default () => { try { write(); return "written"; } catch { return read(); } };`)
	lock, err := runner.Lock(t.Context(), "cap", source, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := runner.Run(t.Context(), Job{Name: "cap", Source: source, Lock: lock, Workspace: t.TempDir()})
	if err != nil || result.Text != "own data" {
		t.Errorf("%v %+v", err, result)
	}
	if _, err := os.Stat("/tmp/tendril-lifecycle-ran"); err == nil {
		t.Error("a lifecycle script ran")
	}
}

// lockMocks locks the dependencies of a job at a registry of small packages,
// which, if it evolves, turns hostile afterwards.
func (f *fixture) lockMocks(t *testing.T, job *Job, evolves bool) {
	t.Helper()
	served, web := testkit.NewModules(t, nil), testkit.NewModules(t, &testCertificate)
	say := func(text string) testkit.Package {
		return testkit.Package{Version: "1.0.0", Files: map[string]string{"mod.js": text}}
	}
	served.Publish("tendril-mock-hello", say("export default (name) => 'hello ' + name;"))
	served.Publish("tendril-mock-evolving", say("export default 'good';"))
	withScripts := say("export default 'installed';")
	touch := "touch " + filepath.Join(f.ws, "lifecycle-ran")
	withScripts.Scripts = map[string]string{"preinstall": touch, "install": touch, "postinstall": touch}
	served.Publish("tendril-mock-postinstall", withScripts)
	served.PublishJSR("@tendril/hello", "1.0.0", map[string]string{"/mod.ts": "export const hello = (s: string): string => `jsr hello ${s}`;"})
	web.Put("/tendril/mod.ts", "export const v = 1;")
	internet := oneHost{web.Server.Listener.Addr().String()}
	locker := &Runner{
		Self: f.runner.Self, Deno: f.runner.Deno, Home: f.runner.Home, Resolver: internet, Registries: Registries{NPM: served.NPM(), JSR: served.JSR()},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "127.") {
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			return internet.dial(ctx, network, address)
		},
	}
	f.lock(t, locker, job)
	if evolves {
		evil := say("export default 'EVIL';")
		served.Publish("tendril-mock-evolving", evil)
		evil.Version = "1.0.1"
		served.Publish("tendril-mock-evolving", evil)
	}
	if _, err := os.Stat(filepath.Join(f.ws, "lifecycle-ran")); err == nil {
		t.Error("a lifecycle script ran")
	}
}

// lockReal locks the dependencies of a job at the public registry of npm.
func (f *fixture) lockReal(t *testing.T, job *Job) {
	t.Helper()
	f.lock(t, &Runner{Self: f.runner.Self, Deno: f.runner.Deno, Home: f.runner.Home}, job)
}

func (f *fixture) lock(t *testing.T, locker *Runner, job *Job) {
	t.Helper()
	lock, err := locker.Lock(t.Context(), job.Name, job.Source, []string{"esm.sh"})
	if problemOf(err) == Unreachable {
		t.Skip("the registry cannot be reached: ", err)
	}
	if err != nil || lock == nil {
		t.Fatalf("lock %s, %v", lock, err)
	}
	job.Lock = lock
}

// pack is a package of one module.
func pack(text string) testkit.Package {
	return testkit.Package{Version: "1.0.0", Files: map[string]string{"mod.js": text}}
}

// Whatever stands in a lock, it is read or refused, and what is listed of it has
// a hash.
func FuzzDependencies(f *testing.F) {
	hash := strings.Repeat("a", 64)
	for _, seed := range []string{
		"", "{}", `{"version":"5"}`, `{"version":"4"}`, "null", "[]", `{"version":"5","npm":{"":{"integrity":"sha512-"}}}`,
		`{"version":"5","specifiers":{"npm:a@1":"1.0.0","jsr:@a/b@1":"1.0.0"},"npm":{"a@1.0.0_b@2":{"integrity":"sha512-x"}},"jsr":{"@a/b@1.0.0":{"integrity":"` + hash + `"}}}`,
		`{"version":"5","redirects":{"https://a":"https://b/@"},"remote":{"https://b/@":"` + hash + `","::":"` + hash + `"}}`,
	} {
		f.Add([]byte(seed), "npm:@a/b@1.0.0/x")
	}
	f.Fuzz(func(t *testing.T, lock []byte, specifier string) {
		Locks(lock, specifier)
		if l, err := parseLock(lock); err == nil {
			l.importHosts(&url.URL{Scheme: "https", Host: "jsr.io"})
		}
		found, err := Dependencies(lock)
		if err != nil && len(found) > 0 {
			t.Error("an error and dependencies")
		}
		for _, d := range found {
			if len(d.Integrity) < 7 || d.String() == "" && d.Name != "" {
				t.Errorf("%+v", d)
			}
		}
	})
}
