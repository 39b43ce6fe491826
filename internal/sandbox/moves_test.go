package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunner_WorkspaceStays moves granted folders as a whole, which would take
// what is in them out of the rules that close it.
func TestRunner_WorkspaceStays(t *testing.T) {
	root := t.TempDir()
	ws := filepath.Join(root, "ws")
	if err := errors.Join(os.MkdirAll(filepath.Join(ws, "tools"), 0o755), os.MkdirAll(filepath.Join(ws, "out"), 0o755), os.WriteFile(filepath.Join(ws, "tools", "a.ts"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	const source = `import * as fs from "node:fs";
		export default (_args: unknown, { tmp }: { tmp: string }) => {
			const done: string[] = [];
			const t = (name: string, f: () => unknown) => { try { f(); done.push(name) } catch { /* refused */ } };
			for (const from of [__workspace, ".", __workspace + "/tools", __workspace + "/.git"])
				for (const to of [tmp + "/x", __workspace + "/out/x", __workspace + "/../x"]) {
					t("Deno.rename " + from + to, () => Deno.renameSync(from, to));
					t("fs.rename " + from + to, () => fs.renameSync(from, to));
					t("fs.cp " + from + to, () => fs.cpSync(from, to, { recursive: true }));
				}
			t("Deno.remove", () => Deno.removeSync(__workspace, { recursive: true }));
			t("Deno.remove tools", () => Deno.removeSync(__workspace + "/tools", { recursive: true }));
			t("fs.rm", () => fs.rmSync(__workspace, { recursive: true }));
			return done;
		}`
	got := mustRun(t, newRunner(t), Job{Name: "mover", Source: []byte(source), Workspace: ws})
	for _, moved := range []string{"rename", "remove", "rm"} {
		if strings.Contains(got.Text, moved) {
			t.Errorf("%s worked: %s", moved, got.Text)
		}
	}
	if _, err := os.Stat(filepath.Join(ws, "tools", "a.ts")); err != nil {
		t.Error(err)
	}
}

func TestRunner_TwoRoots(t *testing.T) {
	ws := t.TempDir()
	a, b := filepath.Join(ws, "a"), filepath.Join(ws, "b")
	if err := errors.Join(os.Mkdir(a, 0o755), os.Mkdir(b, 0o755)); err != nil {
		t.Fatal(err)
	}
	job := Job{Name: "roots", Source: []byte(`console.log("ran")`), Workspace: ws, Grant: Grant{Write: []string{a, b}}}
	if got := mustRun(t, newRunner(t), job); got.Text != "ran" {
		t.Error(got.Text)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(a, "link")); err != nil {
		t.Skip("no links here")
	}
	runner := newRunner(t)
	if _, err := runner.Run(t.Context(), job); err == nil || !strings.Contains(err.Error(), "could be moved") {
		t.Error(err)
	}
}

func TestRunner_TemporaryFiles(t *testing.T) {
	runner := newRunner(t)
	const use = `export default (_a: unknown, c: { tmp: string }) => {
		Deno.writeTextFileSync(c.tmp + "/x", "1"); Deno.makeTempFileSync();
		return [...Deno.readDirSync(c.tmp)].length }`
	for name, write := range map[string][]string{"workspace": nil, "nothing": {}} {
		ws := t.TempDir()
		got := mustRun(t, runner, Job{Name: "temps", Source: []byte(use), Workspace: ws, Args: json.RawMessage(`{}`), Grant: Grant{Write: write}})
		if got.Text != "2" {
			t.Errorf("%s: %s", name, got.Text)
		}
		if entries, err := os.ReadDir(ws); err != nil || len(entries) > 0 {
			t.Errorf("%s: left %v %v", name, entries, err)
		}
	}
}

func TestRunner_LinksInAFolderThatIsOnlyWritten(t *testing.T) {
	ws, outside := t.TempDir(), filepath.Join(t.TempDir(), "target")
	sub := filepath.Join(ws, "a", "sub")
	if err := errors.Join(os.MkdirAll(sub, 0o755), os.WriteFile(outside, []byte("kept"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(sub, "link")); err != nil {
		t.Skip("no links here")
	}
	job := Job{Name: "writer", Source: []byte(`Deno.writeTextFileSync("a/sub/link", "changed")`), Workspace: ws,
		Grant: Grant{Read: []string{}, Write: []string{filepath.Join(ws, "a")}}}
	if got := mustRun(t, newRunner(t), job); got.Outcome != Failed || !strings.Contains(got.Text, "Requires write access") {
		t.Error(got.Text)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "kept" {
		t.Error(string(text), err)
	}
}

// TestRunner_CommaInName: a file that one run makes cannot take other files away
// from the next.
func TestRunner_CommaInName(t *testing.T) {
	ws := t.TempDir()
	for name, text := range map[string]string{"data": "data", ".env,data": "secret"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := mustRun(t, newRunner(t), Job{Name: "comma", Source: []byte(`export default () => Deno.readTextFileSync("data")`), Workspace: ws})
	if got.Text != "data" {
		t.Error(got.Text)
	}
}
