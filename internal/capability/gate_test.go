package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

func TestParseDefinition_Refuses(t *testing.T) {
	ok := `"name":"x","capability":"c","triggers":["t"],"suppression":[]`
	for input, want := range map[string]string{
		``:                                "got nothing",
		`null`:                            "got null",
		`"x"`:                             "got a string",
		`[]`:                              "got an array",
		`{"name":"x"`:                     "ends too early",
		`{}`:                              "missing name, capability, triggers",
		`{` + ok + `} x`:                  "not valid JSON",
		`{` + ok + `,"Name":"y"}`:         `unknown key "Name"; write it "name"`,
		`{` + ok + `,"NAME":"y"}`:         `write it "name"`,
		`{` + ok + `,"name":"y"}`:         `"name" is given twice`,
		`{` + ok + `,"extra":1}`:          `unknown key "extra"; the keys are name`,
		`{` + ok + `,"\u001b":1}`:         `unknown key "\x1b"`,
		`{` + ok + `,"triggers2":[null]}`: "unknown key",
		`{"name":7,"capability":"c","triggers":["t"]}`:                 "definition.name: want a string, got a number",
		`{"name":"x","capability":"c","triggers":"t"}`:                 "definition.triggers: want an array of strings, got a string",
		`{"name":"x","capability":"c","triggers":["t",null]}`:          "definition.triggers[1]: want a string, got null",
		`{"name":"x","capability":"c","triggers":null}`:                "missing triggers",
		`{` + ok + `,"permissions":[]}`:                                "definition.permissions: want an object, got an array",
		`{` + ok + `,"permissions":{"Net":[]}}`:                        `definition.permissions: unknown key "Net"; write it "net"`,
		`{` + ok + `,"permissions":{"net":"a.com"}}`:                   "definition.permissions.net: want an array of strings",
		`{` + ok + `,"permissions":{"net":[1]}}`:                       "definition.permissions.net[0]",
		`{` + ok + `,"examples":{}}`:                                   "definition.examples: want an array",
		`{` + ok + `,"examples":[{"arguments":{}}]}`:                   `definition.examples[0]: unknown key "arguments"`,
		`{` + ok + `,"examples":[{"args":[]}]}`:                        "definition.examples[0].args: want an object",
		strings.Repeat(`{"name":`, 20000) + strings.Repeat("}", 20000): "not valid JSON",
	} {
		_, err := ParseDefinition(json.RawMessage(input))
		var refusal *Refusal
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v; want %q", input, err, want)
		}
	}
}

func TestParseDefinition_KeepsDigitsAndNulls(t *testing.T) {
	def, err := ParseDefinition(json.RawMessage(`{"name":"x","capability":"c","triggers":["t"],"suppression":null,
		"parameters":{"const":9007199254740993},"permissions":{"net":null,"read":[]},"examples":[{"args":{"id":9007199254740993,"__proto__":1}}],"reason":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(def.Parameters) != `{"const":9007199254740993}` || string(def.Examples[0].Args) != `{"id":9007199254740993,"__proto__":1}` {
		t.Errorf("digits: %s %s", def.Parameters, def.Examples[0].Args)
	}
	if def.Suppression == nil || def.Permissions.Net != nil || def.Permissions.Read == nil {
		t.Errorf("nulls: %+v %+v", def, def.Permissions)
	}
	if _, err := ParseDefinition(encode(def)); err != nil {
		t.Errorf("what we write of it does not parse: %v", err)
	}
}

func TestGate_Shape(t *testing.T) {
	r := openWith(t, testOptions(t))
	long := strings.Repeat("x", 70000)
	for name, c := range map[string]struct {
		change func(*Definition)
		code   string
		want   string
	}{
		"blank name":      {func(d *Definition) { d.Name = "" }, "1", "name is blank"},
		"camel":           {func(d *Definition) { d.Name = "camelCase" }, "1", "snake_case"},
		"path":            {func(d *Definition) { d.Name = "../x" }, "1", "snake_case"},
		"NUL name":        {func(d *Definition) { d.Name = "a\x00" }, "1", "snake_case"},
		"65 characters":   {func(d *Definition) { d.Name = strings.Repeat("a", 65) }, "1", "at most 64"},
		"device":          {func(d *Definition) { d.Name = "lpt1" }, "1", "device"},
		"blank sentence":  {func(d *Definition) { d.Capability = " \t" }, "1", "capability is blank"},
		"two lines":       {func(d *Definition) { d.Capability = "a\nb" }, "1", "line break"},
		"NUL sentence":    {func(d *Definition) { d.Capability = "a\x00b" }, "1", "control character"},
		"long sentence":   {func(d *Definition) { d.Capability = long }, "1", "at most 500"},
		"no triggers":     {func(d *Definition) { d.Triggers = nil }, "1", "triggers is empty"},
		"blank trigger":   {func(d *Definition) { d.Triggers = []string{"a", ""} }, "1", "triggers[1] is blank"},
		"many triggers":   {func(d *Definition) { d.Triggers = make([]string, 21) }, "1", "at most 20"},
		"blank code":      {nil, " \n", "code is blank"},
		"huge code":       {nil, strings.Repeat("/", maxSource+1), "at most 262144"},
		"bad UTF-8":       {nil, "a\xff", "not valid UTF-8"},
		"NUL in code":     {nil, "ab\nc\x00", "line 2, column 2"},
		"parameters list": {func(d *Definition) { d.Parameters = json.RawMessage(`[]`) }, "1", "must be a JSON Schema object"},
		"not a schema":    {func(d *Definition) { d.Parameters = json.RawMessage(`{"type":"objekt"}`) }, "1", `must be "object"`},
		"bad inside":      {func(d *Definition) { d.Parameters = json.RawMessage(`{"properties":{"a":{"type":"strin"}}}`) }, "1", "not a JSON Schema"},
		"remote ref":      {func(d *Definition) { d.Parameters = json.RawMessage(`{"$ref":"https://example.com/s.json"}`) }, "1", "only references inside"},
		"file ref":        {func(d *Definition) { d.Parameters = json.RawMessage(`{"$ref":"file:///etc/passwd"}`) }, "1", "only references inside"},
		"lost ref":        {func(d *Definition) { d.Parameters = json.RawMessage(`{"$ref":"#/$defs/x"}`) }, "1", "not a JSON Schema"},
		"huge parameters": {func(d *Definition) { d.Parameters = encode(map[string]string{"description": long}) }, "1", "at most 65536"},
		"any host:port":   {func(d *Definition) { d.Permissions = &Permissions{Net: []string{"*:80"}} }, "1", "net[0]"},
		"loopback":        {func(d *Definition) { d.Permissions = &Permissions{Net: []string{"a.com", "localhost"}} }, "1", "net[1]"},
		"secret name":     {func(d *Definition) { d.Permissions = &Permissions{Secrets: []string{"my token"}} }, "1", "no name of a secret"},
		"secret steers":   {func(d *Definition) { d.Permissions = &Permissions{Secrets: []string{"HTTPS_PROXY"}} }, "1", "give a meaning to"},
		"secret twice":    {func(d *Definition) { d.Permissions = &Permissions{Secrets: []string{"TOKEN", "TOKEN"}} }, "1", "twice"},
		"absolute path":   {func(d *Definition) { d.Permissions = &Permissions{Read: []string{"/etc"}} }, "1", "relative to the workspace"},
		"dot dot":         {func(d *Definition) { d.Permissions = &Permissions{Write: []string{"a/../../b"}} }, "1", "out of the workspace"},
		"comma":           {func(d *Definition) { d.Permissions = &Permissions{Write: []string{"a,b"}} }, "1", "commas"},
		"glob":            {func(d *Definition) { d.Permissions = &Permissions{Read: []string{"*.md"}} }, "1", "patterns"},
		"git":             {func(d *Definition) { d.Permissions = &Permissions{Read: []string{".git/config"}} }, "1", "protected"},
		"tools":           {func(d *Definition) { d.Permissions = &Permissions{Write: []string{"tools"}} }, "1", "protected"},
		"limits":          {func(d *Definition) { d.Permissions = &Permissions{Limits: json.RawMessage(`{"timeoutMs":-1}`)} }, "1", "limits.timeoutMs"},
		"case of limits":  {func(d *Definition) { d.Permissions = &Permissions{Limits: json.RawMessage(`{"timeoutms":1}`)} }, "1", `write it "timeoutMs"`},
		"huge limit":      {func(d *Definition) { d.Permissions = &Permissions{Limits: json.RawMessage(`{"timeoutMs":1e9}`)} }, "1", "limits.timeoutMs"},
	} {
		t.Run(name, func(t *testing.T) {
			def := definition("x")
			if c.change != nil {
				c.change(&def)
			}
			_, err := r.Register(t.Context(), def, c.code, Provenance{}, nil)
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Step != StepShape || !strings.Contains(refusal.Message, c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
	if l := list(t, r, ""); l.Total != 0 {
		t.Errorf("kept: %v", names(l))
	}
}

func TestGate_ShapeWarns(t *testing.T) {
	r := openWith(t, testOptions(t))
	def := definition("x")
	def.Triggers = []string{"one"}
	def.Permissions = &Permissions{Read: []string{"."}, Limits: json.RawMessage(`{"timeoutMs":1000,"rssMB":5}`)}
	a := register(t, r, def, "1")
	wantNote(t, a.Warnings, "1 trigger;")
	if v := resolve(t, r, "x"); v.Limits.Timeout.Seconds() != 1 || v.Limits.RSSMB != 5 {
		t.Errorf("limits %+v", v.Limits)
	}
}

func TestGate_Modules(t *testing.T) {
	for specifier, want := range map[string]string{
		"node:fs": "", "node:path/posix": "",
		"./b.ts": "local file", "../b.ts": "local file", "/etc/x.ts": "local file", "file:///x.ts": "local file", "C:\\x.ts": "local file", ".": "local file",
		"http://example.com/z.ts": "on the way can change", "https://localhost/z.ts": "local network", "https://u:p@example.com/z.ts": "a password",
		"https://[::1]/z.ts": "cannot be granted", "https://10.0.0.1/z.ts": "not a public one", "npm:": "names no package", "npm:../x": "names no package", "jsr:std": "names no package", "npm:a b": "names no package",
		"data:text/javascript,1": "data: URL", "blob:null/1": "blob: URL", "zod": "bare name", "@std/fs": "bare name", "bun:ffi": "of this kind", "": "computed",
	} {
		opts := testOptions(t)
		opts.Checker = checker{imports: func(string) ([]sandbox.Import, error) {
			return []sandbox.Import{{Specifier: specifier, Line: 7, Column: 3}}, nil
		}}
		_, err := openWith(t, opts).Register(t.Context(), definition("x"), "1", Provenance{}, nil)
		if want == "" && err != nil {
			t.Errorf("%q: %v", specifier, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 7, column 3") || !strings.Contains(err.Error(), "to mend it")) {
			t.Errorf("%q: %v; want %q", specifier, err, want)
		}
	}
}

func TestGate_ReadsTheSource(t *testing.T) {
	r := openWith(t, testOptions(t))
	for code, want := range map[string]string{
		"if (import.meta.main) run()":                "import.meta.main",
		"x;\n  if (import . meta\n.main) {}":         "line 2, column 7",
		"`${import.meta.main}`":                      "import.meta.main",
		"// import.meta.main":                        "",
		"/* import.meta.main */ 1":                   "",
		"'import.meta.main'":                         "",
		"`import.meta.main ${'}'} import.meta.main`": "",
		"import.meta.mainly":                         "",
		"await import(x)":                            "computed",
		"await import('./' + x)":                     "computed",
		"await import(`./${x}.ts`)":                  "computed",
		"await import('node:fs')":                    "",
		"await import(/* why */ \"node:fs\")":        "",
		"const s = 'import(x)'":                      "",
		strings.Repeat("`${", 5000):                  "",
		"'\\":                                        "",
	} {
		_, err := r.Register(t.Context(), definition("x"), code, Provenance{}, nil)
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40s: %v; want %q", code, err, want)
		}
	}
}

func TestGate_SyntaxErrorIsARefusal(t *testing.T) {
	opts := testOptions(t)
	opts.Checker = checker{imports: func(string) ([]sandbox.Import, error) {
		return nil, &sandbox.SyntaxError{Diagnostic: sandbox.Diagnostic{Line: 2, Column: 9, Message: "unexpected }"}}
	}}
	_, err := openWith(t, opts).Register(t.Context(), definition("x"), "}", Provenance{}, nil)
	var refusal *Refusal
	if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "line 2, column 9") {
		t.Errorf("got %v", err)
	}
}

func TestGate_CancelIsNoRefusal(t *testing.T) {
	opts := testOptions(t)
	ctx, cancel := context.WithCancel(t.Context())
	opts.Checker = checker{check: func(string, string) ([]sandbox.Diagnostic, error) {
		cancel()
		return nil, ctx.Err()
	}}
	_, err := openWith(t, opts).Register(ctx, definition("x"), "1", Provenance{}, nil)
	var refusal *Refusal
	if !errors.Is(err, context.Canceled) || errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
}

func netDefinition(hosts ...string) Definition {
	def := definition("x")
	def.Permissions = &Permissions{Net: hosts}
	return def
}

func TestPolicy_AutoGrantsWhatIsDeclared(t *testing.T) {
	r := openWith(t, testOptions(t))
	a := register(t, r, netDefinition("example.com"), "1")
	v := resolve(t, r, "x")
	if !slices.Equal(a.Grants.Net, []string{"example.com"}) || !slices.Equal(v.Grant.Net, a.Grants.Net) || v.Grant.Read != nil {
		t.Errorf("grants %v, grant %+v", a.Grants, v.Grant)
	}
}

func TestPolicy_DenyAndCeiling(t *testing.T) {
	for name, policy := range map[string]Policy{
		"deny": {Network: NetworkDeny}, "ceiling": {AllowedDomains: []string{"other.com", "example.com:8443"}},
	} {
		opts := testOptions(t)
		register(t, openWith(t, opts), netDefinition("example.com"), "1")
		opts.Policy = policy
		r := openWith(t, opts)
		var refusal *Refusal
		if _, err := r.Register(t.Context(), netDefinition("example.com"), "2", Provenance{}, nil); !errors.As(err, &refusal) || refusal.Step != StepPermissions {
			t.Errorf("%s: register: %v", name, err)
		}
		var refused *RefusedError
		if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &refused) {
			t.Errorf("%s: a version from before: %v", name, err)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		allowed, host string
		want          bool
	}{
		{"a.com", "a.com", true}, {"a.com", "A.com", true}, {"a.com", "a.com:443", true}, {"a.com:443", "a.com", false},
		{"a.com:443", "a.com:443", true}, {"a.com:443", "a.com:80", false}, {"a.com", "b.a.com", false}, {"*.a.com", "b.a.com", true},
		{"*.a.com", "a.com", true}, {"*.a.com", "*.b.a.com", true}, {"*.b.a.com", "*.a.com", false}, {"a.com", "*.a.com", false},
		{"*.a.com", "ba.com", false}, {"*.a.com:443", "x.a.com", false},
	} {
		if got := covers([]string{c.allowed}, c.host); got != c.want {
			t.Errorf("%s covers %s: %v", c.allowed, c.host, got)
		}
	}
}

func TestPending(t *testing.T) {
	opts := testOptions(t)
	opts.Policy.Network = NetworkAsk
	r := openWith(t, opts)
	a := register(t, r, netDefinition("a.com"), "one")
	if a.Status != StatusPending || a.Command != "tendril capability approve x" {
		t.Errorf("admission %+v", a)
	}
	var pending *PendingError
	if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &pending) || !strings.Contains(err.Error(), a.Command) {
		t.Errorf("resolve: %v", err)
	}
	if s := list(t, r, "").Capabilities[0].Status; s != StatusPending {
		t.Errorf("listed as %s", s)
	}
	if a, err := r.Approve(t.Context(), "x"); err != nil || a.Status != StatusUnproven {
		t.Fatalf("approve: %+v, %v", a, err)
	}
	resolve(t, r, "x")

	// The same hosts need no second approval; more do, and the good one goes on.
	register(t, r, netDefinition("a.com"), "two")
	if v := resolve(t, r, "x"); string(v.Source) != "two" || len(v.Notes) > 0 {
		t.Errorf("%q runs, notes %q", v.Source, v.Notes)
	}
	register(t, r, netDefinition("a.com", "b.com"), "three")
	v := resolve(t, r, "x")
	if string(v.Source) != "two" || readTool(t, opts, "x.ts") != "two" {
		t.Errorf("a waiting version runs: %q", v.Source)
	}
	wantNote(t, v.Notes, "b.com")
	if info, err := r.Show(t.Context(), "x"); err != nil || info.Pending != "1.2.0" {
		t.Errorf("show: %+v, %v", info, err)
	}

	// A person is there now: asked once, with the difference.
	p := &person{answer: Deny}
	opts.Approver = p
	r = openWith(t, opts)
	turn := InTurn(t.Context())
	for range 2 {
		if v, err := r.Resolve(turn, "x", nil); err != nil || string(v.Source) != "two" {
			t.Errorf("denied, but %q runs: %v", v.Source, err)
		}
	}
	if len(p.asked) != 1 || !slices.Equal(p.asked[0].New.Hosts, []string{"b.com"}) || p.asked[0].Version != "1.2.0" {
		t.Errorf("asked %+v", p.asked)
	}
	p.answer = AllowOnce
	r = openWith(t, opts)
	if v := resolve(t, r, "x"); string(v.Source) != "three" || readTool(t, opts, "x.ts") != "three" || len(p.asked) != 2 {
		t.Errorf("allowed, but %q runs after %d questions", v.Source, len(p.asked))
	}
	opts.Approver = nil
	if _, err := openWith(t, opts).Resolve(t.Context(), "x", nil); !errors.As(err, &pending) || !slices.Equal(pending.Wants.Hosts, []string{"b.com"}) {
		t.Errorf("once is not always: %v", err)
	}
}

func TestRegister_DeniedByAPerson(t *testing.T) {
	opts := testOptions(t)
	opts.Policy.Network = NetworkAsk
	p := &person{answer: Deny}
	opts.Approver = p
	r := openWith(t, opts)
	var refusal *Refusal
	for turn := 1; turn <= 2; turn++ { // a no holds for its turn
		ctx := InTurn(t.Context())
		for range 2 {
			if _, err := r.Register(ctx, netDefinition("a.com"), "1", Provenance{}, nil); !errors.As(err, &refusal) {
				t.Errorf("got %v", err)
			}
		}
		if len(p.asked) != turn {
			t.Errorf("asked %d times in %d turns", len(p.asked), turn)
		}
	}
	p.answer = AllowAlways
	register(t, openWith(t, opts), netDefinition("a.com"), "1")
	opts.Approver = nil
	resolve(t, openWith(t, opts), "x")
}

func TestList_SizeAndQuery(t *testing.T) {
	opts := testOptions(t)
	opts.ListBytes = 4000
	var entries []string
	for i := range 60 {
		entries = append(entries, fmt.Sprintf(`{"name":"tool_%d","capability":"Handles topic%d of things.","triggers":["user asks topic%d"],"suppression":["never zebra"]}`, i, i, i))
	}
	writeTool(t, opts, "index.json", `{"version":"1.0.0","capabilities":[`+strings.Join(entries, ",")+`]}`)
	r := openWith(t, opts)
	for range 3 {
		if err := r.Record(t.Context(), Run{Name: "tool_59", Started: noon}); err != nil {
			t.Fatal(err)
		}
	}
	l := list(t, r, "")
	if l.Total != 60 || l.Shown == 60 || l.Shown != len(l.Capabilities) || l.Message == "" || l.Capabilities[0].Name != "tool_59" {
		t.Errorf("no query: %d of %d, %q", l.Shown, l.Total, l.Message)
	}
	if l := list(t, r, "what is topic42 about?"); l.Capabilities[0].Name != "tool_42" {
		t.Errorf("first of topic42: %s", l.Capabilities[0].Name)
	}
	for _, none := range []string{"zebra", "quantum"} {
		if l := list(t, r, none); !strings.Contains(l.Message, "register one") {
			t.Errorf("%s: %q", none, l.Message)
		}
	}
	if l := list(t, r, strings.Repeat("topic1 ", 10000)); l.Capabilities[0].Name != "tool_1" {
		t.Errorf("a long query: %s", l.Capabilities[0].Name)
	}
}

func TestCheckArgs(t *testing.T) {
	v := Runnable{Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string","pattern":"^(?=a)"}},"required":["n"],"additionalProperties":false}`)}
	for args, ok := range map[string]bool{
		`{"n":9007199254740993}`: true, `{"n":1,"s":"b"}`: true, `{}`: false, ``: false, `{"n":"1"}`: false, `{"n":1,"N":2}`: false, `[]`: false, `{`: false, `null`: false,
	} {
		if err := v.CheckArgs(json.RawMessage(args)); (err == nil) != ok {
			t.Errorf("%s: %v", args, err)
		}
	}
	if err := (&Runnable{}).CheckArgs(json.RawMessage(`{"a":1}`)); err != nil {
		t.Error(err)
	}
}
