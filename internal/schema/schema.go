// Package schema compiles JSON Schemas that came from outside and explains, in
// one line a model or a person can act on, what a value does against them.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
}

// maxProblems bounds how many complaints one error names.
const maxProblems = 6

// Compile compiles raw, which must be a JSON object that describes an object. A
// $ref may only point into the schema itself: nothing is ever loaded.
func Compile(raw json.RawMessage) (*Schema, error) {
	value, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New(`must be a JSON Schema object, for example {"type": "object", "properties": {}}`)
	}
	if kind, ok := object["type"]; ok && kind != "object" {
		return nil, errors.New(`describes an object: its "type" must be "object"`)
	}
	const id = "mem:///schema.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(anyRegexp)
	if err := c.AddResource(id, value); err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	compiled, err := c.Compile(id)
	if err != nil {
		return nil, compileError(err)
	}
	return &Schema{compiled}, nil
}

// noLoader refuses every reference that leaves the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q: only references inside the schema (#/$defs/…) are followed", url)
}

// anyRegexp accepts the patterns of JavaScript that Go cannot express, such as
// lookaheads: they match everything here.
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

func compileError(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var validation *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &validation) {
		return fmt.Errorf("not a JSON Schema: %s", strings.Join(problems(validation), "; "))
	}
	return fmt.Errorf("not a JSON Schema: %w", err)
}

// Validate checks a JSON value. The error names each place and what is wrong
// there, for example `args.count: got string, want integer`; root is the word
// for the whole value.
func (s *Schema) Validate(root string, raw json.RawMessage) error {
	value, err := decode(raw)
	if err != nil {
		return fmt.Errorf("%s: not valid JSON: %w", root, err)
	}
	err = s.compiled.Validate(value)
	var validation *jsonschema.ValidationError
	if errors.As(err, &validation) {
		list := problems(validation)
		for i, p := range list {
			list[i] = root + p
		}
		return errors.New(strings.Join(list, "; "))
	}
	return err
}

// problems flattens a validation error to its leaves, each as ".path: what".
func problems(err *jsonschema.ValidationError) []string {
	printer := message.NewPrinter(language.English)
	var list []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			line := path(e.InstanceLocation) + ": " + e.ErrorKind.LocalizedString(printer)
			if !slices.Contains(list, line) {
				list = append(list, line)
			}
			return
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(err)
	if len(list) > maxProblems {
		list = append(list[:maxProblems], fmt.Sprintf(" and %d more", len(list)-maxProblems))
	}
	return list
}

func path(location []string) string {
	var b strings.Builder
	for _, part := range location {
		b.WriteString(".")
		b.WriteString(part)
	}
	return b.String()
}

// decode reads exactly one JSON value and keeps the digits of its numbers.
func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one JSON value")
	}
	return value, nil
}

// UnknownKeys returns the keys of the JSON object raw that are not in known,
// spelled exactly: Go's own decoder would take "NAME" for "name".
func UnknownKeys(raw json.RawMessage, known ...string) []string {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	var unknown []string
	for key := range object {
		if !slices.Contains(known, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	return unknown
}
