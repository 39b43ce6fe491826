package capability_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/store"
	"github.com/tendril-agent/tendril/internal/testkit"
)

// denoRegistry is a registry whose gate asks the real Deno.
func denoRegistry(t testing.TB) *capability.Registry {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ws", "home"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	db, err := store.Open(t.Context(), store.Memory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r, err := capability.Open(t.Context(), capability.Options{
		Workspace: filepath.Join(dir, "ws"), DB: db,
		Checker: &sandbox.Runner{Deno: sandbox.Deno{Path: testkit.Deno(t)}, Home: filepath.Join(dir, "home")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func definition(t testing.TB, parameters string) capability.Definition {
	t.Helper()
	def, err := capability.ParseDefinition(json.RawMessage(
		`{"name":"x","capability":"Does x.","triggers":["user asks","user needs"],"suppression":[],"parameters":` + parameters + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return def
}

func TestGate_WithDeno(t *testing.T) {
	const parameters = `{"type":"object","properties":{"url":{"type":"string"},"__proto__":{"const":"\"; }"},"é\u2028😀 */":{"enum":["a\\","*/"]},"next":{"$ref":"#"}},"required":["url"]}`
	r := denoRegistry(t)
	for name, c := range map[string]struct{ code, want string }{
		"good":           {"import { readFileSync } from \"node:fs\";\nexport default async function (a: unknown) { return args.url.length + args.next!.url + __workspace + typeof readFileSync; }\n", ""},
		"type error":     {"const a = 1;\nconst n: number = args.url;\n", "line 2, column 7"},
		"unknown arg":    {"\n\nconsole.log(args.ulr);\n", "line 3, column 18"},
		"syntax error":   {"const a = 1;\nconst = 2;\n", "line 2"},
		"local import":   {"// first\nimport { a } from \"./a.ts\";\nconsole.log(a);\n", "line 2, column 19"},
		"insecure":       {"import z from \"http://example.com/z.ts\";\nconsole.log(z);\n", "line 1, column 15"},
		"dynamic import": {"const m = await import(\"https://x/z.ts\");\nconsole.log(m);\n", "line 1, column 24"},
		"main guard":     {"if (import.meta.main) console.log(1);\n", "line 1, column 5"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Register(t.Context(), definition(t, parameters), c.code, capability.Provenance{}, nil)
			var refusal *capability.Refusal
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

// Types made of hostile schemas are TypeScript: the check finds no fault.
func TestArgsType_IsTypeScript(t *testing.T) {
	r := denoRegistry(t)
	for _, parameters := range []string{
		`{}`, `{"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"const":1},{"const":-2.5},{"type":"array","items":{"enum":["x",true,null]}}]}},"additionalProperties":{"type":"number"}}`,
		`{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"object","additionalProperties":{"type":"boolean"}}}}]}`,
		`{"properties":{"":{},"a b":{},"constructor":{},"\u0000\u001b":{},"'":{},"` + "`${x}`" + `":{},"\\":{},"\u2029":{}}}`,
	} {
		if _, err := r.Register(t.Context(), definition(t, parameters), "console.log(args);\n", capability.Provenance{}, nil); err != nil {
			t.Errorf("%s: %v", parameters, err)
		}
	}
}
