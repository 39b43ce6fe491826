package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const schemaURL = "mem:///parameters.json"

// compileParameters compiles a JSON Schema of args. Nothing is ever loaded from
// elsewhere.
func compileParameters(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("definition.parameters is not valid JSON: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New(`definition.parameters must be a JSON Schema object, for example {"type": "object", "properties": {}}`)
	}
	if t, ok := object["type"]; ok && t != "object" {
		return nil, errors.New(`definition.parameters describes args, which is an object: its "type" must be "object"`)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(anyRegexp)
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("definition.parameters is not a JSON Schema: %w", plainSchemaError(err))
	}
	schema, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("definition.parameters is not a JSON Schema: %w", plainSchemaError(err))
	}
	return schema, nil
}

// plainSchemaError takes our made-up address out of the library's message.
func plainSchemaError(err error) error {
	text := strings.ReplaceAll(err.Error(), schemaURL, "parameters")
	return errors.New(clip(strings.ReplaceAll(text, "\n", "; "), 600))
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: only references inside the schema (#/$defs/…) are followed", quote(url))
}

// anyRegexp accepts the patterns of JavaScript that Go cannot express, such as
// lookaheads: they then match everything here.
func anyRegexp(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return matchAll(pattern), nil
	}
	return re, nil
}

type matchAll string

func (matchAll) MatchString(string) bool { return true }
func (m matchAll) String() string        { return string(m) }

// CheckArgs checks args, the JSON object of a call, against the parameters of
// the capability. The error names each place that does not fit.
func (r *Runnable) CheckArgs(args json.RawMessage) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return &InputError{"args", "is not valid JSON: " + err.Error()}
	}
	if _, ok := value.(map[string]any); !ok {
		return &InputError{"args", "want an object, got " + kindOf(args)}
	}
	if len(r.Parameters) == 0 {
		return nil
	}
	schema, err := compileParameters(r.Parameters)
	if err != nil {
		return nil // of an old workspace: its gate has warned
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(value); errors.As(err, &invalid) {
		return &InputError{"args", strings.Join(leaves(invalid, nil), "; ")}
	}
	return nil
}

// leaves collects what a validation error is made of.
func leaves(e *jsonschema.ValidationError, into []string) []string {
	if len(into) >= shownDiagnostics {
		return into
	}
	if len(e.Causes) == 0 {
		text := e.Error()
		if _, after, ok := strings.Cut(text, "\n"); ok {
			text = after
		}
		return append(into, clip(strings.TrimPrefix(strings.TrimSpace(text), "- "), 300))
	}
	for _, cause := range e.Causes {
		into = leaves(cause, into)
	}
	return into
}
