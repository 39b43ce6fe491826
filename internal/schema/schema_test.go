package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCompile_RefusesWhatIsNoSchemaOfArguments(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"not JSON":                {`{`, "not JSON"},
		"two values":              {`{"type":"object"} {}`, "more than one"},
		"an array":                {`[]`, "must be a JSON Schema object"},
		"another type":            {`{"type":"string"}`, `"type" must be "object"`},
		"wrong keyword":           {`{"type":"object","required":"a"}`, ".required: got string, want array"},
		"a remote ref":            {`{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`, "only references inside"},
		"a file ref":              {`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "only references inside"},
		"a missing ref":           {`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`, "not a JSON Schema"},
		"a regex that is no text": {`{"type":"object","properties":{"a":{"pattern":7}}}`, "not a JSON Schema"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(json.RawMessage(c.raw))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestSchema_ValidateNamesThePlace(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"n":{"type":"integer"},"list":{"type":"array","items":{"type":"string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"name":"x","n":9007199254740993}`: "",
		`{"name":"x","other":1}`:            "",
		`{}`:                                "args: missing property 'name'",
		`{"name":1}`:                        "args.name: got number, want string",
		`{"name":"x","n":1.5}`:              "args.n: got number, want integer",
		`{"name":"x","list":["a",2]}`:       "args.list.1: got number, want string",
		`[]`:                                "args: got array, want object",
		`{"name"`:                           "args: not valid JSON",
	} {
		err := s.Validate("args", json.RawMessage(value))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: got %v, want no error", value, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
	}
}

func TestSchema_TakesPatternsThatGoCannotExpress(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"properties":{"a":{"type":"string","pattern":"^(?=x)x$"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate("args", json.RawMessage(`{"a":"y"}`)); err != nil {
		t.Error(err)
	}
}

func TestUnknownKeys_ComparesExactly(t *testing.T) {
	got := UnknownKeys(json.RawMessage(`{"name":1,"NAME":2,"Name":3,"x":4}`), "name", "args")
	if strings.Join(got, ",") != "NAME,Name,x" {
		t.Errorf("got %v", got)
	}
}

func FuzzCompileAndValidate(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string"}}}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"type":"object","$ref":"#"}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s, err := Compile(schema)
		if err == nil {
			_ = s.Validate("args", value)
		}
	})
}
