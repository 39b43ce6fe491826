package capability

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestArgsType(t *testing.T) {
	for schema, want := range map[string]string{
		``:                                  `any`,
		`{}`:                                `any`,
		`true`:                              `any`,
		`false`:                             `never`,
		`{"type":"object"}`:                 `{ [key: string]: any }`,
		`{"type":"string"}`:                 `string`,
		`{"type":"integer"}`:                `number`,
		`{"type":["string","null"]}`:        `(string | null)`,
		`{"type":"string","nullable":true}`: `(string | null)`,
		`{"enum":["a",1,true,null]}`:        `("a" | 1 | true | null)`,
		`{"enum":["a",{}]}`:                 `any`,
		`{"const":-1.5}`:                    `-1.5`,
		`{"const":1e400}`:                   `number`,
		`{"type":"array","items":{"type":"string"}}`:                                 `Array<string>`,
		`{"type":"array"}`:                                                           `Array<any>`,
		`{"items":{"type":"string"}}`:                                                `Array<string>`,
		`{"properties":{"b":{"type":"number"},"a":{}},"required":["b","c"]}`:         `{ "a"?: any; "b": number; "c": any; }`,
		`{"type":"object","properties":{"a":{}},"additionalProperties":true}`:        `({ "a"?: any; } & { [key: string]: any })`,
		`{"type":"object","properties":{"a":{}},"additionalProperties":false}`:       `{ "a"?: any; }`,
		`{"type":"object","additionalProperties":{"type":"number"}}`:                 `{ [key: string]: number }`,
		`{"type":"object","additionalProperties":false}`:                             `{ [key: string]: never }`,
		`{"properties":{"__proto__":{"type":"string"},"a\"; }; x":{},"é\u2028":{}}}`: `{ "__proto__"?: string; "a\"; }; x"?: any; "\u00e9\u2028"?: any; }`,
		`{"anyOf":[{"type":"string"},{"type":"number"}]}`:                            `(string | number)`,
		`{"oneOf":[{"type":"string"},{}]}`:                                           `any`,
		`{"allOf":[{"type":"string"},{"const":"x"}]}`:                                `(string & "x")`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`:                       `string`,
		`{"$ref":"#/definitions/a~1b","definitions":{"a/b":{"type":"string"}}}`:      `string`,
		`{"properties":{"next":{"$ref":"#"}}}`:                                       `{ "next"?: { "next"?: any; }; }`,
		`{"$ref":"https://example.com/x"}`:                                           `any`,
		`{"$ref":"#/nope"}`:                                                          `any`,
		`{"type":7,"enum":3,"properties":[],"required":{}}`:                          `{ [key: string]: any }`,
		`{"properties":{"😀":{}}}`:                                                    `{ "\ud83d\ude00"?: any; }`,
	} {
		if got := argsType(json.RawMessage(schema)); got != want {
			t.Errorf("%s\n got %s\nwant %s", schema, got, want)
		}
	}
}

func TestArgsType_GrowthIsBounded(t *testing.T) {
	bomb := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range 20 {
		next := string(encode("#/$defs/a" + string(rune('0'+i+1))))
		bomb += `"a` + string(rune('0'+i)) + `":{"properties":{"l":{"$ref":` + next + `},"r":{"$ref":` + next + `}}},`
	}
	bomb += `"z":{}}}`
	deep := strings.Repeat(`{"items":`, 5000) + `{}` + strings.Repeat(`}`, 5000)
	for _, schema := range []string{bomb, deep} {
		if got := argsType(json.RawMessage(schema)); len(got) > 2*maxTypeBytes {
			t.Errorf("%d bytes", len(got))
		}
	}
}

func FuzzArgsType(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"enum":[1,"x"]}},"required":["a"]}`))
	f.Add([]byte(`{"anyOf":[{"type":["string","null"]},{"allOf":[{"items":{}}]}],"nullable":true}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		got := argsType(schema)
		if len(got) > 2*maxTypeBytes || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r") || !balanced(got) {
			t.Errorf("%q gives %q", schema, got)
		}
	})
}

// balanced reports whether brackets outside of string literals pair up, so that
// nothing in a schema can leave the type that it is written into.
func balanced(text string) bool {
	var open []byte
	inString, escaped := false, false
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case strings.IndexByte("({[<", c) >= 0:
			open = append(open, c)
		case strings.IndexByte(")}]>", c) >= 0:
			if len(open) == 0 || strings.IndexByte("({[<", open[len(open)-1]) != strings.IndexByte(")}]>", c) {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0 && !inString
}

func FuzzDecodeIndex(f *testing.F) {
	f.Add([]byte(seedIndex("a", "b")))
	f.Add([]byte("<<<<<<< a\n{}\n=======\n[]\n>>>>>>> b\n"))
	f.Add([]byte(`{"version":1,"capabilities":[{"name":"cap_a","triggers":"x"},null,7,{"name":"../evil"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, e := range salvage(data) {
			if !validName(e.def.Name) {
				t.Errorf("salvaged the name %q", e.def.Name)
			}
		}
		ix, err := decodeIndex(data, nil)
		if err != nil || ix.conflict != "" || len(ix.bad) > 0 {
			return
		}
		again, err := decodeIndex(ix.encode(), nil)
		if err != nil || len(again.entries) != len(ix.entries) {
			t.Fatalf("what we write does not read: %v\n%s", err, ix.encode())
		}
		for i, e := range ix.entries {
			if !validName(e.def.Name) || canonical(e) != canonical(again.entries[i]) {
				t.Errorf("entry %d changed: %s, %s", i, canonical(e), canonical(again.entries[i]))
			}
		}
	})
}

func FuzzParseDefinition(f *testing.F) {
	f.Add([]byte(`{"name":"x","capability":"c","triggers":["t"],"suppression":[],"permissions":{"net":["a.com"],"limits":{"timeoutMs":1}},"examples":[{"args":{}}]}`))
	f.Add([]byte(`{"name":"x","NAME":"y"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		def, err := ParseDefinition(raw)
		var refusal *Refusal
		if err != nil {
			if !errors.As(err, &refusal) {
				t.Errorf("not a refusal: %v", err)
			}
			return
		}
		again, err := ParseDefinition(encode(def))
		if err != nil || admissionHash(&def, nil, nil) != admissionHash(&again, nil, nil) {
			t.Errorf("%q does not survive: %v", raw, err)
		}
		checkShape(&def, []byte("1"), false)
		checkPermissions(def.Permissions, "/ws")
	})
}

func FuzzMaskText(f *testing.F) {
	f.Add("`${a}` /* */ // '\n\"\\")
	f.Fuzz(func(t *testing.T, source string) {
		masked := maskText(source)
		if len(masked) != len(source) || strings.Count(masked, "\n") != strings.Count(source, "\n") {
			t.Errorf("%q becomes %q", source, masked)
		}
		findMainGuard(source)
		findComputedImports(source)
	})
}
