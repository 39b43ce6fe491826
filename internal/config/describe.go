package config

import (
	"encoding/json"
	"slices"
	"strings"
)

// Description is what a person can see of the settings.
type Description struct {
	// Settings are all settings, with their defaults. Values that look like
	// secrets are hidden.
	Settings json.RawMessage
	Known    []string // the paths of all settings that there are
	Warnings []Warning
	Problems []Problem // with which nothing runs
}

// Describe describes the settings in the folder home. A file with problems can
// still be described; the error is about one that is no JSON or cannot be read.
func Describe(home string) (Description, error) {
	doc, err := readFile(home)
	if err != nil {
		return Description{}, err
	}
	_, r := inspect(doc)
	all, err := (&member{obj: effective(doc)}).redacted().indented()
	return Description{Settings: all, Known: leaves(r.known), Warnings: r.warnings, Problems: r.problems}, err
}

// leaves are the paths that have none below them.
func leaves(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		return slices.ContainsFunc(paths, func(other string) bool { return strings.HasPrefix(other, path+".") })
	})
}
