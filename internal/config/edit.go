package config

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
)

// Change is one setting and its new value. A Value that is JSON counts as that,
// anything else as a text; null removes the setting.
type Change struct {
	Path  string // such as agent.maxTurns or model.prices."gpt-5.1".input
	Value string
}

// Get returns the value at path as indented JSON: a setting with its default, a
// whole section, or anything else that the file holds; everything for an empty
// path, null for a setting without a value. Values that look like secrets are
// hidden. A file with problems can still be read here.
func Get(home, path string) (json.RawMessage, error) {
	doc, err := readFile(home)
	if err != nil {
		return nil, err
	}
	root := &member{obj: effective(doc)}
	if path == "" {
		return root.redacted().indented()
	}
	keys, err := splitPath(path)
	if err != nil {
		return nil, err
	}
	if m := root.obj.lookup(keys); m != nil {
		return m.redacted().indented()
	}
	if _, r := interpret(doc); !slices.Contains(r.known, joinPath(keys)) {
		return nil, unknownSetting(path, r.known)
	}
	return json.RawMessage("null"), nil
}

// Set changes settings, all or none, and returns what the person should know
// about the new ones. A change that brings a new problem is refused with an
// [*Error], and so is a workspace that no command would take; problems that were there before stay, so that they can be mended
// one by one. Changes made by several processes at once all hold.
func Set(dirs Dirs, changes ...Change) ([]Warning, error) {
	unlock, err := lock(dirs.Tendril)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p, err := Propose(dirs, changes...)
	if err != nil {
		return nil, err
	}
	if err := p.write(); err != nil {
		return nil, err
	}
	return p.Warnings, nil
}

// inspect finds everything that is wrong with a document, an incomplete
// provider included.
func inspect(doc *object) (*Config, *reader) {
	cfg, r := interpret(doc)
	r.problems = append(r.problems, cfg.Model.missing()...)
	return cfg, r
}

// checkWorkspace refuses what [ResolveWorkspace] would, and a file.
func checkWorkspace(given string, dirs Dirs) error {
	path, err := resolveWorkspace(given, false, dirs)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return errors.New("is no folder")
	}
	return nil
}

// added returns what after has and before had not.
func added[T comparable](before, after []T) []T {
	return slices.DeleteFunc(slices.Clone(after), func(v T) bool { return slices.Contains(before, v) })
}

func apply(doc *object, c Change) error {
	keys, err := splitPath(c.Path)
	if err != nil {
		return err
	}
	value, err := parseValue(c.Value)
	if err != nil {
		return failf("%s cannot be set: %w", c.Path, err)
	}
	if last := keys[len(keys)-1]; looksSecret(last) && !value.isNull() {
		return failf("%s: %s", c.Path, secretReason(strings.TrimSuffix(c.Path, "."+last)))
	}
	stale := doc.lookup(keys) != nil
	if err := doc.set(keys, value); err != nil {
		return failf("%s cannot be set: %w", c.Path, err)
	}
	_, r := interpret(doc)
	if stale || slices.Contains(r.known, joinPath(keys)) {
		return nil
	}
	return unknownSetting(c.Path, r.known)
}

// parseValue reads what a person typed.
func parseValue(typed string) (member, error) {
	if !json.Valid([]byte(typed)) {
		return member{raw: quote(typed)}, nil
	}
	raw := json.RawMessage(strings.TrimSpace(typed))
	if raw[0] != '{' {
		return member{raw: raw}, nil
	}
	obj, err := parseObject(raw, "", 0)
	return member{obj: obj}, err
}

func unknownSetting(path string, known []string) error {
	parent := ""
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent = path[:i+1]
	}
	var siblings []string
	for _, k := range known {
		if rest, ok := strings.CutPrefix(k, parent); ok && !strings.Contains(rest, ".") {
			siblings = append(siblings, k)
		}
	}
	if len(siblings) == 0 {
		return failf("%s is no setting; `tendril config get` shows those that there are", path)
	}
	return failf("%s is no setting; there are %s", path, strings.Join(siblings, ", "))
}
