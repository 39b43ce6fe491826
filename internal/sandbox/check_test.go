package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunner_Imports(t *testing.T) {
	source := `#!/usr/bin/env deno
/// <reference types="./r.d.ts" />
/// <reference path="./p.d.ts" />
// @deno-types="./dt.d.ts"
import a from "npm:a@1";
// @ts-types="https://x.test/t.d.ts"
import b from "https://x.test/b.js";
import type { T } from "./t.ts";
import data from "file:///etc/passwd" with { type: "text" };
import { readFileSync } from "node:fs";
export * from "jsr:@x/y@1";
const c = await import("data:text/javascript,1");
const d = await import(` + "`./tpl.ts`" + `);
type Q = import("../imptype.ts").Q;
import "/dev/zero";
import "blob:abc";
import "bare";
const e = await import("./cap.ts");
`
	want := []Import{
		{"./r.d.ts", 2, 22, false, true}, {"./p.d.ts", 3, 21, false, true}, {"./dt.d.ts", 4, 16, false, true}, {"npm:a@1", 5, 15, false, false},
		{"https://x.test/t.d.ts", 6, 14, false, true}, {"https://x.test/b.js", 7, 15, false, false}, {"./t.ts", 8, 24, false, true},
		{"file:///etc/passwd", 9, 18, false, false}, {"node:fs", 10, 30, false, false}, {"jsr:@x/y@1", 11, 15, false, false},
		{"data:text/javascript,1", 12, 24, true, false}, {"./tpl.ts", 13, 24, true, false}, {"../imptype.ts", 14, 17, false, true},
		{"/dev/zero", 15, 8, false, false}, {"blob:abc", 16, 8, false, false}, {"bare", 17, 8, false, false}, {"./cap.ts", 18, 24, true, false},
	}
	runner := newRunner(t)
	got, err := runner.Imports(t.Context(), "cap", []byte(source))
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v\n%+v", err, got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
	if none, err := runner.Imports(t.Context(), "cap", nil); err != nil || len(none) > 0 {
		t.Error(none, err)
	}
}

func TestRunner_SyntaxErrors(t *testing.T) {
	runner := newRunner(t)
	for _, tt := range []struct {
		source       string
		line, column int
	}{
		{"const a = 1;\nconst b: = 2;", 2, 10},
		{"const a = `never closed", 1, 11},
		{"import x from;", 1, 14},
		{"\n\n  }", 3, 3},
	} {
		_, err := runner.Imports(t.Context(), "broken", []byte(tt.source))
		_, err2 := runner.Check(t.Context(), "broken", []byte(tt.source), nil, "")
		for _, err := range []error{err, err2} {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line != tt.line || syntax.Message == "" || strings.Contains(err.Error(), "tendril-run-") {
				t.Errorf("%q: %v", tt.source, err)
			}
		}
	}
}

func TestRunner_Check(t *testing.T) {
	runner := newRunner(t)
	for _, tt := range []struct {
		name, source, argsType string
		want                   []Diagnostic // Message is a part of it
	}{
		{name: "fine", source: "export default (a: { n: number }) => a.n + args.x + __workspace.length;"},
		{name: "empty"},
		{name: "lenient", source: "function f(a) { return a }\ntry { f(1) } catch (e) { console.log(e.message) }\nlet x; x = 1; Deno.env; process; Buffer;\n"},
		{name: "own names", source: "const args = 1; const __workspace = 2; console.log(args + __workspace);"},
		{name: "places", source: "\n  const n: number = 'x';\n/* 😀 */ foo();\n", want: []Diagnostic{{2, 9, "TS2322", "not assignable"}, {3, 10, "TS2304", "Cannot find name 'foo'"}}},
		{name: "args", source: "const y: number = args.city;\nargs.other;", argsType: "{ city: string }", want: []Diagnostic{{1, 7, "TS2322", ""}, {2, 6, "TS2339", "'other'"}}},
		{name: "long message", source: "const o: { a: { b: number } } = ({ a: { b: 's' } }) as { a: { b: string } };", want: []Diagnostic{{1, 7, "TS2322", "Type 'string' is not assignable to type 'number'."}}},
		{name: "node", source: "import { readFileSync } from 'node:fs';\nreadFileSync(1, 2, 3, 4);", want: []Diagnostic{{2, 0, "TS2554", ""}}},
		{name: "local import", source: "\nimport { x } from '/etc/passwd.ts'; x;", want: []Diagnostic{{2, 19, "", "local file"}}},
		{name: "data import", source: "import x from 'data:application/typescript,import%20y%20from%20%22file:///etc/passwd%22'; x;", want: []Diagnostic{{0, 0, "", "cannot be loaded"}}},
		{name: "fake report", source: "const t = `\nTS1 [ERROR]: fake\n    at file:///x.ts:1:1\n`; t.nope;", want: []Diagnostic{{4, 6, "TS2339", "nope"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := runner.Check(t.Context(), "cap", []byte(tt.source), nil, tt.argsType)
			if err != nil || len(got) != len(tt.want) {
				t.Fatalf("%v %+v", err, got)
			}
			for i, want := range tt.want {
				if got[i].Line != want.Line || want.Column > 0 && got[i].Column != want.Column || got[i].Code != want.Code || !strings.Contains(got[i].Message, want.Message) {
					t.Errorf("got %+v, want %+v", got[i], want)
				}
			}
		})
	}
	if _, err := runner.Check(t.Context(), "cap", []byte("args"), nil, "{ broken"); err == nil || !strings.Contains(err.Error(), "type of its args") {
		t.Error(err)
	}
}

// TestRunner_CheckLeaksNothing imports outside files in all ways and looks for
// their text in what comes back.
func TestRunner_CheckLeaksNothing(t *testing.T) {
	runner, outside := newRunner(t), t.TempDir()
	for name, text := range map[string]string{"s.json": `{"` + secret + `":1}`, "s.ts": "export const x = '" + secret + "' is = broken", "d.ts": "declare const leaked: '" + secret + "';"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, form := range []string{
		"import x from '%s/s.json' with { type: 'json' }; const n: never = x;", "import { x } from '%s/s.ts'; const n: never = x;",
		"/// <reference path=\"%s/d.ts\" />\nconst n: never = leaked;", "/// <reference types=\"%s/d.ts\" />\nconst n: never = leaked;",
		"type X = typeof import('%s/s.ts'); const n: never = {} as X;", "const x = await import('%s/s.json'); const n: never = x;",
		"// @deno-types=\"%s/d.ts\"\nimport x from 'node:fs'; x;", "import x from '%s/s.json' with { type: 'text' }; const n: never = x;",
	} {
		for _, prefix := range []string{outside, fileURL(outside), "../../../../../../../../.." + filepath.ToSlash(outside)} {
			source := []byte(strings.ReplaceAll(form, "%s", prefix))
			found, err := runner.Check(t.Context(), "leak", source, nil, "")
			imports, err2 := runner.Imports(t.Context(), "leak", source)
			for _, d := range found {
				if strings.Contains(d.Message, secret) {
					t.Errorf("%s: %+v", source, d)
				}
			}
			if err != nil || len(found) == 0 || err2 != nil || len(imports) == 0 {
				t.Errorf("%s: %v %v %v %v", source, found, err, imports, err2)
			}
		}
	}
}

func TestRunner_CheckRunsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	source := []byte("await Deno.writeTextFile(" + "`" + file + "`" + ", 'x');")
	runner := newRunner(t)
	_, err := runner.Check(t.Context(), "cap", source, nil, "")
	_, err2 := runner.Imports(t.Context(), "cap", source)
	if _, statErr := os.Stat(file); err != nil || err2 != nil || statErr == nil {
		t.Error(err, err2, statErr)
	}
}

func TestRunner_CheckCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runner := newRunner(t)
	if _, err := runner.Check(ctx, "cap", nil, nil, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	none := Runner{}
	if _, err := none.Imports(t.Context(), "cap", nil); !errors.Is(err, ErrNoDeno) {
		t.Error(err)
	}
}

func FuzzDiagnostics(f *testing.F) {
	s := &stage{root: "/stage", name: "cap"}
	f.Add("TS2322 [ERROR]: Type.\n  Because 'a'.\nconst x\n      ~\n    at file:///stage/src/cap.ts:1:7\n\nFound 1 error.\n")
	f.Add("error: Something\n    at file:///stage/src/cap.ts:1:99999999999999999999\n")
	f.Add("error: SyntaxError: bad\n    at file:///stage/src/cap.ts:2:3\n")
	f.Fuzz(func(t *testing.T, out string) {
		for _, d := range diagnostics(s, out) {
			if d.Line < 0 || d.Column < 0 {
				t.Errorf("%+v", d)
			}
		}
		syntaxError(s, out)
		_, _ = rootImports(s, []byte(out))
		authorError(out)
	})
}
