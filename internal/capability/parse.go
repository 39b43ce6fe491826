package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The keys that a definition and its parts may hold.
var (
	definitionKeys = []string{"name", "capability", "triggers", "suppression", "parameters", "permissions", "examples", "replaces", "reason"}
	permissionKeys = []string{"net", "read", "write", "secrets", "limits"}
	exampleKeys    = []string{"args", "expect"}
)

// ParseDefinition reads the definition of a registerCapability call. Keys match
// exactly, unknown ones are refused, and JSON values keep their bytes. An
// error is a *[Refusal] of the step [StepShape]; whether the values make sense is for the
// gate to say.
func ParseDefinition(raw json.RawMessage) (Definition, error) {
	def, err := parseDefinition(raw, "definition")
	if err != nil {
		return Definition{}, shapeRefusal(err)
	}
	return def, nil
}

func shapeRefusal(err error) error {
	var input *InputError
	if errors.As(err, &input) {
		return &Refusal{Step: StepShape, Message: input.Error(), Hint: "correct the definition and register again"}
	}
	return err
}

func parseDefinition(raw json.RawMessage, path string) (Definition, error) {
	fields, err := DecodeObject(raw, path, definitionKeys...)
	if err != nil {
		return Definition{}, err
	}
	if missing := missingKeys(fields, "name", "capability", "triggers"); missing != "" {
		return Definition{}, &InputError{path, "missing " + missing}
	}
	return definitionOf(func(key string) json.RawMessage { return fields[key] }, path)
}

func missingKeys(fields map[string]json.RawMessage, required ...string) string {
	var missing []string
	for _, key := range required {
		if fields[key] == nil {
			missing = append(missing, key)
		}
	}
	return strings.Join(missing, ", ")
}

// definitionOf reads the fields of a definition, wherever they stand.
func definitionOf(get func(key string) json.RawMessage, path string) (def Definition, err error) {
	texts := []struct {
		key string
		to  *string
	}{
		{"name", &def.Name}, {"capability", &def.Capability}, {"replaces", &def.Replaces}, {"reason", &def.Reason},
	}
	for _, t := range texts {
		if *t.to, err = DecodeString(get(t.key), path+"."+t.key); err != nil {
			return def, err
		}
	}
	if def.Triggers, err = decodeStrings(get("triggers"), path+".triggers"); err != nil {
		return def, err
	}
	if def.Suppression, err = decodeStrings(get("suppression"), path+".suppression"); err != nil {
		return def, err
	}
	def.Triggers, def.Suppression = orEmpty(def.Triggers), orEmpty(def.Suppression)
	def.Parameters = get("parameters")
	if def.Permissions, err = parsePermissions(get("permissions"), path+".permissions"); err != nil {
		return def, err
	}
	def.Examples, err = parseExamples(get("examples"), path+".examples")
	return def, err
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func parsePermissions(raw json.RawMessage, path string) (*Permissions, error) {
	if raw == nil {
		return nil, nil
	}
	fields, err := DecodeObject(raw, path, permissionKeys...)
	if err != nil {
		return nil, err
	}
	p := &Permissions{Limits: fields["limits"]}
	lists := []struct {
		key string
		to  *[]string
	}{
		{"net", &p.Net}, {"read", &p.Read}, {"write", &p.Write}, {"secrets", &p.Secrets},
	}
	for _, l := range lists {
		if *l.to, err = decodeStrings(fields[l.key], path+"."+l.key); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func parseExamples(raw json.RawMessage, path string) ([]Example, error) {
	items, err := decodeArray(raw, path, "an array of examples")
	if err != nil || len(items) == 0 {
		return nil, err
	}
	examples := make([]Example, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		fields, err := DecodeObject(item, at, exampleKeys...)
		if err != nil {
			return nil, err
		}
		examples[i] = Example{Args: fields["args"], Expect: fields["expect"]}
		if examples[i].Args == nil {
			examples[i].Args = json.RawMessage("{}")
		}
		if kind := kindOf(examples[i].Args); kind != "an object" {
			return nil, &InputError{at + ".args", "want an object, got " + kind}
		}
	}
	return examples, nil
}
