package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

func newRunner(t *testing.T) *Runner {
	t.Helper()
	return &Runner{Self: selfForTests(), Deno: Deno{Path: testkit.Deno(t)}, Home: t.TempDir()}
}

func caps(t *testing.T, name string) []byte {
	t.Helper()
	source, err := os.ReadFile("testdata/caps/" + name + ".ts")
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestRunner_Answer(t *testing.T) {
	runner := newRunner(t)
	for _, tt := range []struct{ name, source, text, value string }{
		{"string", `console.log("log"); export default () => "hi"`, "hi", `"hi"`},
		{"object", `export default async (a, c) => ({ a, c: Object.keys(c) })`, `{"a":{"n":1},"c":["workspace","tmp","signal"]}`, `{"a":{"n":1},"c":["workspace","tmp","signal"]}`},
		{"null", `export default () => null`, "null", "null"},
		{"blank string", `export default () => " "`, "(no output)", `" "`},
		{"undefined", `console.log(" printed \n"); export default () => {}`, "printed", ""},
		{"map", `export default () => ({ m: new Map([["a", 1]]), n: new Map([[1, 2]]) })`, `{"m":{"a":1},"n":[[1,2]]}`, `{"m":{"a":1},"n":[[1,2]]}`},
		{"set and generator", `export default () => [new Set([1, 2]), (function* () { yield 3; })()]`, `[[1,2],[3]]`, `[[1,2],[3]]`},
		{"typed array", `export default () => new Uint8Array([1, 2])`, `[1,2]`, `[1,2]`},
		{"date", `export default () => new Date(0)`, "1970-01-01T00:00:00.000Z", `"1970-01-01T00:00:00.000Z"`},
		{"default is no function", `console.log("x"); export default 5`, "x", ""},
		{"no default", `console.log(args.n, __workspace.length > 0)`, "1 true", ""},
		{"thenable", `export default () => ({ then(f) { f(7) } })`, "7", "7"},
		{"lone surrogate", `export default () => "a\ud800b"`, "a\uFFFDb", `"a\ud800b"`},
		{"control characters", `export default () => "a\u0000\u001b[31mb\u202ec"`, "abc", `"a\u0000\u001b[31mb\u202ec"`},
		{"last line is a comment", "console.log('x') // y", "x", ""},
		{"shebang", "#!/usr/bin/env deno\nconsole.log('x')", "x", ""},
		{"timer goes on", `setInterval(() => {}, 1e6); export default () => "done"`, "done", `"done"`},
		{"signal", `export default (_a, { signal }) => signal.aborted`, "false", "false"},
		{"partial line before the frame", `Deno.stdout.writeSync(new Uint8Array([97])); export default () => "v"`, "v", `"v"`},
		{"patched globals", `JSON.stringify = () => '"x"'; Uint8Array.prototype.set = () => {}; TextEncoder.prototype.encode = () => new Uint8Array();
			Deno.stdout.writeSync = () => 0; Object.prototype.toString = () => "x"; Reflect.apply = () => 0; globalThis.JSON = null as never;
			Object.defineProperty(Object.getPrototypeOf(Uint8Array.prototype), "buffer", { get() { return new ArrayBuffer(9) } });
			export default () => ({ real: true })`, `{"real":true}`, `{"real":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := mustRun(t, runner, Job{Name: "answer", Source: []byte(tt.source), Args: json.RawMessage(`{"n":1}`), Workspace: t.TempDir()})
			if got.Outcome != OK || got.Text != tt.text || string(got.Value) != tt.value {
				t.Errorf("got %s %q %q: %s", got.Outcome, got.Text, got.Value, got.Error)
			}
		})
	}
}

func TestRunner_Failure(t *testing.T) {
	runner := newRunner(t)
	for _, tt := range []struct {
		name, source string
		outcome      Outcome
		code         int
		text         string // pattern
	}{
		{"throw", "interface A { x: 1 }\n\nexport default () => {\n  console.log('before');\n  throw new TypeError('bad');\n}", Failed, 1, `(?s)^TypeError: bad\n.*at .*failure\.ts:5:9.*before`},
		{"top level", "\n\nthrow new Error('top')", Failed, 1, `^Error: top\n(.*\n)*.*at failure\.ts:3:7`},
		{"syntax", "const a = 1;\nconst b: = 2;", Failed, 1, `failure\.ts:2:10`},
		{"in a timer", "setTimeout(() => {\n throw new Error('late') }, 1)", Failed, 1, `failure\.ts:2:8`},
		{"rejection", `Promise.reject(new Error("floating"))`, Failed, 1, `floating`},
		{"throw null", `throw null`, Failed, 1, `null`},
		{"big integer", `export default () => 1n`, Failed, 1, `cannot be written as JSON`},
		{"process", `await new Deno.Command("ls").output()`, Failed, 1, `a capability cannot start processes`},
		{"permission", `Deno.readTextFileSync("/etc/passwd")`, Failed, 1, `not among the permissions of this capability`},
		{"local import", "import \"./other.ts\"", Failed, 1, `"\./other\.ts"`},
		{"exit code", `console.error("reason"); Deno.exit(3)`, Failed, 3, `(?s)exit code 3.*reason`},
		{"colours", `throw new Error("\u001b[31mred\u001b[0m")`, Failed, 1, `Error: red`},
		{"kept to itself", `import process from "node:process"; process.on("uncaughtException", () => {});
			export default () => { throw new Error("x") }`, Failed, 0, `^the capability threw an error, and kept Deno from telling which`},
		{"crash", `import process from "node:process"; process.abort()`, Crashed, 139, `crashed`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.outcome == Crashed && runtime.GOOS == "windows" {
				t.Skip("another exit code")
			}
			got := mustRun(t, runner, Job{Name: "failure", Source: []byte(tt.source), Workspace: t.TempDir()})
			if got.Outcome != tt.outcome || got.ExitCode != tt.code || !regexp.MustCompile(tt.text).MatchString(got.Text) {
				t.Errorf("got %s %d %q", got.Outcome, got.ExitCode, got.Text)
			}
			if strings.Contains(got.Text, "tendril-run-") || strings.Contains(got.Text, "bootstrap") || strings.Contains(got.Text, "\x1b") {
				t.Errorf("the text shows our insides: %q", got.Text)
			}
		})
	}
}

// TestRunner_StderrIsKept: a run cannot hide what it printed behind what looks
// like the last words of Deno or of its engine.
func TestRunner_StderrIsKept(t *testing.T) {
	runner := newRunner(t)
	for _, words := range []string{"error: Uncaught (in promise) Error: x", "error: " + neverResolved, "<--- Last few GCs --->\n\n# Fatal x", "#\n# Fatal x"} {
		source := fmt.Sprintf("console.error(%q); console.error('evidence'); export default () => 1", words)
		got := mustRun(t, runner, Job{Name: "words", Source: []byte(source), Workspace: t.TempDir()})
		if got.Outcome != OK || got.Stderr != words+"\nevidence\n" {
			t.Errorf("%q: %s %q", words, got.Outcome, got.Stderr)
		}
	}
}

// TestRunner_Cases runs the programs that made peers fail.
func TestRunner_Cases(t *testing.T) {
	runner := newRunner(t)
	short := Limits{Timeout: 4 * time.Second}
	for _, tt := range []struct {
		name    string
		limits  Limits
		outcome Outcome
		text    string // pattern
	}{
		{"never_resolves", Limits{}, Failed, `never resolved`},
		{"exit_zero_early", Limits{}, OK, `^\(no output\)$`},
		{"timer_keeps_alive", short, TimedOut, `(?s)timed out after 4s.*may remain.*printed`},
		{"spin", short, TimedOut, `timed out`},
		{"empty_output", Limits{}, OK, `^\(no output\)$`},
		{"blank_output", Limits{}, OK, `^\(no output\)$`},
		{"fail_silent", Limits{}, Failed, `exit code 3`},
		{"utf8_split", Limits{}, OK, "^€\n\uFFFD+\\($"},
		{"nul_ansi", Limits{}, OK, `^ab fake$`},
		{"flood_one_line", Limits{}, OutputCapped, `limit of 1048576 bytes: cut there, at least \d+ more bytes`},
		{"flood_stderr", Limits{}, OK, `^result$`},
		{"worker_escape", Limits{}, OK, `^denied NotCapable$`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := mustRun(t, runner, Job{Name: tt.name, Source: caps(t, tt.name), Workspace: t.TempDir(), Limits: tt.limits})
			if got.Outcome != tt.outcome || !regexp.MustCompile(tt.text).MatchString(got.Text) {
				t.Errorf("got %s %.500q", got.Outcome, got.Text)
			}
			if size := len(got.Stdout) + len(got.Stderr); size > defaultOutput+200 {
				t.Errorf("kept %d bytes", size)
			}
		})
	}
}

func TestRunner_CapNeverHalvesACharacter(t *testing.T) {
	runner := newRunner(t)
	for _, stream := range []string{"log", "error"} {
		for limit := int64(1024); limit < 1028; limit++ {
			source := `console.` + stream + `("€".repeat(100_000)); console.` + stream + `("end")`
			got := mustRun(t, runner, Job{Name: "cut", Source: []byte(source), Workspace: t.TempDir(), Limits: Limits{OutputBytes: limit}})
			if strings.Contains(got.Text+got.Stdout+got.Stderr, "\uFFFD") || got.DroppedBytes == 0 {
				t.Errorf("limit %d of %s: dropped %d, %.200q", limit, stream, got.DroppedBytes, got.Text)
			}
			if got.Outcome != OutputCapped {
				t.Errorf("outcome %s", got.Outcome)
			}
		}
	}
}

func TestRunner_ProtoArgs(t *testing.T) {
	args, err := os.ReadFile("testdata/proto-args.json")
	if err != nil {
		t.Fatal(err)
	}
	source := `console.log(Object.hasOwn(args, "__proto__"), args.admin, Object.getPrototypeOf(args) === Object.prototype)`
	got := mustRun(t, newRunner(t), Job{Name: "proto", Source: []byte(source), Args: args, Workspace: t.TempDir()})
	if got.Text != "true undefined true" {
		t.Error(got.Text)
	}
}

func TestRunner_RefusesWhatCannotBeStarted(t *testing.T) {
	runner, ws := newRunner(t), t.TempDir()
	comma := filepath.Join(t.TempDir(), "a,b")
	file := filepath.Join(ws, "file")
	for _, err := range []error{os.Mkdir(comma, 0o755), os.WriteFile(file, nil, 0o644), os.Symlink(t.TempDir(), filepath.Join(ws, "out"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for _, tt := range []struct {
		name string
		job  Job
		text string
	}{
		{"comma", Job{Workspace: comma}, "comma"},
		{"relative workspace", Job{Workspace: "ws"}, "not absolute"},
		{"no workspace", Job{Workspace: filepath.Join(ws, "none")}, "cannot use this workspace"},
		{"args array", Job{Workspace: ws, Args: json.RawMessage(`[1]`)}, "not a JSON object"},
		{"args cut", Job{Workspace: ws, Args: json.RawMessage(`{"a":`)}, "not a JSON object"},
		{"args with more behind", Job{Workspace: ws, Args: json.RawMessage(`{},"url":"x"`)}, "not a JSON object"},
		{"args too deep", Job{Workspace: ws, Args: json.RawMessage(deep)}, "not a JSON object"},
		{"protected read", Job{Workspace: ws, Grant: Grant{Read: []string{filepath.Join(ws, ".git", "config")}}}, "protected place"},
		{"protected write", Job{Workspace: ws, Grant: Grant{Write: []string{filepath.Join(ws, "tools")}}}, "protected place"},
		{"protected relative", Job{Workspace: ws, Grant: Grant{Read: []string{".git/config"}}}, "protected place"},
		{"up and out", Job{Workspace: ws, Grant: Grant{Read: []string{"../x"}}}, "not absolute"},
		{"our home", Job{Workspace: ws, Grant: Grant{Read: []string{runner.Home}}}, "protected place"},
		{"comma in a grant", Job{Workspace: ws, Grant: Grant{Read: []string{ws + "/a,/"}}}, "comma"},
		{"link out", Job{Workspace: ws, Grant: Grant{Write: []string{filepath.Join(ws, "out")}}}, "link out of the workspace"},
		{"host", Job{Workspace: ws, Grant: Grant{Net: []string{"localhost"}}}, "cannot be granted"},
		{"name", Job{Name: "../x", Workspace: ws}, "cannot be a file name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.job.Name == "" {
				tt.job.Name = "refused"
			}
			_, err := runner.Run(t.Context(), tt.job)
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v", err)
			}
		})
	}
	_, err := (&Runner{}).Run(t.Context(), Job{Name: "x", Workspace: ws})
	if !errors.Is(err, ErrNoDeno) {
		t.Error(err)
	}
	_, err = (&Runner{Deno: Deno{Path: filepath.Join(ws, "gone")}}).Run(t.Context(), Job{Name: "x", Workspace: ws})
	if !errors.Is(err, ErrNoDeno) {
		t.Error(err)
	}
}

func TestRunner_OddWorkspaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("these names cannot exist there")
	}
	runner := newRunner(t)
	const source = `await Deno.writeTextFile(__workspace + "/a.txt", "x"); await Deno.writeTextFile("b.txt", "y");
		let tools = ""; try { Deno.writeTextFileSync("tools/x", "") } catch (e) { tools = e.name }
		export default async () => [await Deno.readTextFile("a.txt"), await Deno.readTextFile(__workspace + "/b.txt"), tools]`
	for _, name := range []string{"100% 😍 #1?", `it's "q"`, "-dash", " lead", "trail ", "new\nline", "*", "~", "$HOME", `a\b`, "%20", "a;b=c", "{x}"} {
		t.Run(name, func(t *testing.T) {
			ws := filepath.Join(t.TempDir(), name)
			if err := os.MkdirAll(filepath.Join(ws, "tools"), 0o755); err != nil {
				t.Fatal(err)
			}
			got := mustRun(t, runner, Job{Name: "odd", Source: []byte(source), Workspace: ws})
			if got.Text != `["x","y","NotCapable"]` {
				t.Error(got.Text)
			}
		})
	}
}

func TestRunner_Grants(t *testing.T) {
	runner, ws, outside := newRunner(t), t.TempDir(), t.TempDir()
	for _, path := range []string{"in/a", "out/a", ".env", ".env.production", "deno.json", ".git/config", "tools/a.ts"} {
		path = filepath.Join(ws, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	const source = `const out: string[] = [];
		for (const p of args.read) try { Deno.readTextFileSync(p); out.push("r:" + p) } catch {}
		for (const p of args.write) try { Deno.writeTextFileSync(p, ""); out.push("w:" + p) } catch {}
		export default () => out.join(" ")`
	args := json.RawMessage(`{"read":["in/a","out/a",".env",".env.production","deno.json",".git/config","tools/a.ts"],
		"write":["in/a","out/a",".env",".npmrc","package.json",".git/x","tools/b.ts","new"]}`)
	for _, tt := range []struct {
		name  string
		grant Grant
		want  string
	}{
		{"workspace", Grant{}, "r:in/a r:out/a r:tools/a.ts w:in/a w:out/a w:new"},
		{"nothing", Grant{Read: []string{}, Write: []string{}}, "(no output)"},
		{"some", Grant{Read: []string{filepath.Join(ws, "in")}, Write: []string{filepath.Join(ws, "out")}}, "r:in/a w:out/a"},
		{"relative", Grant{Read: []string{"in"}, Write: []string{"out"}}, "r:in/a w:out/a"},
		{"writes around what it reads", Grant{Read: []string{"in"}}, "r:in/a w:in/a w:out/a w:new"},
		{"reads around what it writes", Grant{Write: []string{"out"}}, "r:in/a r:out/a r:tools/a.ts w:out/a"},
		{"outside only", Grant{Read: []string{outside}, Write: []string{}}, "(no output)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := mustRun(t, runner, Job{Name: "grants", Source: []byte(source), Args: args, Workspace: ws, Grant: tt.grant})
			if got.Text != tt.want {
				t.Errorf("got %q, want %q", got.Text, tt.want)
			}
		})
	}
}

// TestRunner_LinksThatMove renames folders so that links in them get away from
// their rules or change where they lead.
func TestRunner_LinksThatMove(t *testing.T) {
	root := t.TempDir()
	ws := filepath.Join(root, "ws")
	for path, target := range map[string]string{
		"ws/a/b/out": filepath.Join(root, "secret"), "ws/c/d/e/up": "../../../data", "ws/f/in": "sub/x", "ws/g/dead": filepath.Join(root, "later"),
	} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
			t.Skip("no links here")
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(ws, "f", "sub"), 0o755), os.WriteFile(filepath.Join(ws, "f", "sub", "x"), []byte("inner"), 0o644),
		os.WriteFile(filepath.Join(root, "secret"), []byte(secret), 0o644), os.WriteFile(filepath.Join(root, "data"), []byte(secret), 0o644)); err != nil {
		t.Fatal(err)
	}
	const source = `import * as fs from "node:fs";
		const got: string[] = [];
		const t = (f: () => unknown) => { try { got.push(String(f())) } catch { got.push("-") } };
		t(() => fs.readFileSync("a/b/out", "utf8"));
		t(() => { fs.renameSync("a/b", "b"); return fs.readFileSync("b/out", "utf8") });
		t(() => { Deno.renameSync("a", "z"); return fs.readFileSync("z/b/out", "utf8") });
		t(() => { Deno.renameSync("c/d/e", "e"); return fs.readFileSync("e/up", "utf8") });
		t(() => { Deno.writeTextFileSync("g/dead", "x") });
		t(() => fs.cpSync("a", "copy", { recursive: true, dereference: true }));
		t(() => fs.linkSync("a/b/out", "hard"));
		t(() => fs.readFileSync("f/in", "utf8"));
		export default () => got.join()`
	got := mustRun(t, newRunner(t), Job{Name: "movers", Source: []byte(source), Workspace: ws})
	if got.Text != "-,-,-,-,-,-,-,inner" {
		t.Error(got.Text)
	}
}

// TestAccess_DeniesPrivateAddresses goes around CheckHost, to see that Deno's
// own rules hold for names that resolve to this machine.
func TestAccess_DeniesPrivateAddresses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "reached") }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	source := `export default async () => { const got: string[] = [];
		for (const h of ["localhost", "127.0.0.1", "127.1", "2130706433", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"])
			try { await (await fetch("http://" + h + ":` + port + `/")).text(); got.push(h) } catch {}
		return got }`
	for _, hosts := range [][]string{{"localhost"}, {"example.com", "localhost:" + port}} {
		runner := newRunner(t)
		runner.Self = "" // the proxy would refuse them as well
		job := Job{Name: "net", Source: []byte(source), Workspace: t.TempDir(), Limits: Limits{}.WithDefaults()}
		access, err := newAccess(t.Context(), job, runner.Home)
		if err != nil {
			t.Fatal(err)
		}
		access.net = hosts
		stage, err := newStage(job.Name, job.Source)
		if err != nil {
			t.Fatal(err)
		}
		defer stage.Close()
		r := run{job: job, access: access, stage: stage, nonce: newNonce(), begin: time.Now()}
		got, err := r.do(t.Context(), runner)
		if err != nil || got.Text != "[]" {
			t.Errorf("%v: %v %s", hosts, err, got.Text)
		}
	}
}

func TestRunner_GrantedHostsAreValidFlags(t *testing.T) {
	got := mustRun(t, newRunner(t), Job{Name: "flags", Source: []byte(`console.log("ran")`), Workspace: t.TempDir(),
		Grant: Grant{Net: []string{"example.com", "API.example.com:8443", "*.example.org", "xn--bcher-kva.example", "a_b.example.", "203.0.113.7:80"}}})
	if got.Text != "ran" {
		t.Error(got.Text)
	}
}

func TestRunner_LiveOutput(t *testing.T) {
	var lines []string
	source := `console.log("one\u001b[2J"); console.error("two"); Deno.stdout.writeSync(new TextEncoder().encode("three")); console.log("", import.meta.url); export default () => "v"`
	got := mustRun(t, newRunner(t), Job{Name: "live", Source: []byte(source), Workspace: t.TempDir(),
		Output: func(stream, line string) { lines = append(lines, stream+":"+line) }})
	joined := strings.Join(lines, "|")
	if len(lines) != 3 || !strings.Contains(joined, "stdout:one|") && !strings.HasSuffix(joined, "stdout:one") || !strings.Contains(joined, "stdout:three live.ts") || !strings.Contains(joined, "stderr:two") || got.Text != "v" {
		t.Errorf("%q %s", lines, got.Text)
	}
}

// What JSON would lose without a word is a failure that says how to mend it.
func TestRunner_ValuesThatAreNoJSON(t *testing.T) {
	runner := newRunner(t)
	for source, want := range map[string]string{
		`export default () => ({ a: [10n] })`:                   "return String(n)",
		`export default () => ({ a: () => 1 })`:                 "a function is not JSON",
		`export default () => () => 1`:                          "a function is not JSON",
		`export default () => ({ mean: 0 / 0 })`:                "NaN is not JSON",
		`export default () => [new Error("bad luck")]`:          "bad luck",
		`const a = {}; a.a = a; export default () => a`:         "circular",
		`export default () => ({ toJSON() { throw 7 } })`:       "7",
		`export default () => ({ get x() { throw "getter" } })`: "getter",
	} {
		got := mustRun(t, runner, Job{Name: "value", Source: []byte(source), Workspace: t.TempDir()})
		if got.Outcome != Failed || !strings.Contains(got.Text, want) || !strings.Contains(got.Text, "plain object") {
			t.Errorf("%s: %s %s", source, got.Outcome, got.Text)
		}
	}
}

// The account of a failure is told once, by the result, wherever it came from.
func TestRunner_LiveOutputEndsBeforeTheFailure(t *testing.T) {
	for name, source := range map[string]string{
		"thrown":          `console.error("told"); throw new Error("bad luck")`,
		"in the function": `export default () => { console.error("told"); throw new Error("bad luck") }`,
		"in a timer":      `console.error("told"); setTimeout(() => { throw new Error("bad luck") }, 5)`,
		"rejected":        `console.error("told"); Promise.reject(new Error("bad luck")); await new Promise((r) => setTimeout(r, 50))`,
		"no line end":     `Deno.stderr.writeSync(new TextEncoder().encode("told")); throw new Error("bad luck")`,
	} {
		var lines []string
		got := mustRun(t, newRunner(t), Job{Name: "live", Source: []byte(source), Workspace: t.TempDir(),
			Output: func(_, line string) { lines = append(lines, line) }})
		if got.Outcome != Failed || !strings.Contains(got.Text, "bad luck") || strings.Join(lines, "|") != "told" {
			t.Errorf("%s: live %q\n%s", name, lines, got.Text)
		}
	}
}

// TestRunner_NonceStaysHidden looks for the nonce where a program could.
func TestRunner_NonceStaysHidden(t *testing.T) {
	ws := t.TempDir()
	source := `import v8 from "node:v8"; v8.writeHeapSnapshot(__workspace + "/heap"); export default () => "x"`
	mustRun(t, newRunner(t), Job{Name: "heap", Source: []byte(source), Workspace: ws})
	heap, err := os.ReadFile(filepath.Join(ws, "heap"))
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`"[^"]{0,3}[0-9a-f]{32}[^"]{0,3}"`).Find(heap); found != nil {
		t.Errorf("found %s", found)
	}
}

func TestRunner_StageIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	source := `export default (_a, c) => { Deno.mkdirSync(c.tmp + "/d/e", { recursive: true }); Deno.writeTextFileSync(c.tmp + "/d/f", ""); Deno.chmodSync(c.tmp + "/d", 0); return "x" }`
	mustRun(t, newRunner(t), Job{Name: "stage", Source: []byte(source), Workspace: t.TempDir()})
	entries, err := os.ReadDir(os.TempDir())
	if err != nil || len(entries) > 0 {
		t.Error(entries, err)
	}
}

// Where the folder for temporary files lies in the workspace, or cannot be written
// (case D04), another one serves: for a run, and for the gate's checks.
func TestRunner_StageElsewhere(t *testing.T) {
	workspace := t.TempDir()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	runner := newRunner(t)
	source := []byte(`console.log([...Deno.readDirSync(".")].length)`)
	for name, tmp := range map[string]string{"in the workspace": workspace, "missing": file + "-none", "a file": file} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", tmp)
			if got := mustRun(t, runner, Job{Name: "inside", Source: source, Workspace: workspace}); got.Text != "0" {
				t.Error(got.Text)
			}
			if _, err := runner.Imports(t.Context(), "inside", source); err != nil {
				t.Error(err)
			}
		})
	}
}

// Where the folder for temporary files has an odd name (case E06) a run, its
// imports and its types work, and their places are told.
func TestRunner_OddTemporaryFolder(t *testing.T) {
	runner := newRunner(t)
	source := []byte("import fs from \"node:fs\";\nconsole.log(fs.existsSync(\"x\"));\nconst n: string = 1; n;\n")
	for _, name := range []string{"100% 😍 #1?", `it's "q"`, "-dash", " lead", "a&b=c;d", "{x}[y]|^~", "%2e%2e", "ü"} {
		t.Run(name, func(t *testing.T) {
			tmp := filepath.Join(t.TempDir(), name)
			if err := os.Mkdir(tmp, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", tmp)
			if got := mustRun(t, runner, Job{Name: "odd", Source: source, Workspace: t.TempDir()}); got.Text != "false" {
				t.Error(got.Text)
			}
			imports, err := runner.Imports(t.Context(), "odd", source)
			if err != nil || len(imports) != 1 || imports[0].Line != 1 {
				t.Errorf("%v, %v", imports, err)
			}
			found, err := runner.Check(t.Context(), "odd", source, nil, "any")
			if err != nil || len(found) != 1 || found[0].Line != 3 || found[0].Code != "TS2322" {
				t.Errorf("%v, %v", found, err)
			}
			if _, err := runner.Imports(t.Context(), "odd", []byte("const x = ;")); err == nil || !strings.Contains(err.Error(), "line 1") && !strings.Contains(err.Error(), "Expression") {
				t.Error(err)
			}
		})
	}
}

func TestRunner_CancelledBeforeItStarts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runner := newRunner(t)
	got, err := runner.Run(ctx, Job{Name: "x", Workspace: t.TempDir()})
	if err != nil || got.Outcome != Cancelled || got.Text == "" {
		t.Error(got, err)
	}
}
