package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Imports returns what a source names as modules, in the order of the source:
// static and dynamic imports, re-exports, require, types, triple-slash
// references and type pragmas. Names that are only known at run time are not
// among them. Nothing is followed, fetched or run. A source that cannot be
// parsed gives a [*SyntaxError].
func (r *Runner) Imports(ctx context.Context, name string, source []byte) ([]Import, error) {
	stage, err := r.stageCheck(name, source, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot read the imports of %s: %w", name, err)
	}
	defer stage.Close()
	out, code, err := r.deno(ctx, stage, "info", "--json", fileURL(stage.source()))
	if err == nil && code != 0 {
		err = fmt.Errorf("`deno info` ended with exit code %d", code)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the imports of %s: %w", name, err)
	}
	found, err := rootImports(stage, []byte(out))
	var syntax *SyntaxError
	if err != nil && !errors.As(err, &syntax) {
		return nil, fmt.Errorf("cannot read the imports of %s: %w", name, err)
	}
	return found, err
}

// moduleGraph is the part of `deno info --json` that we use.
type moduleGraph struct {
	Modules []struct {
		Specifier    string       `json:"specifier"`
		Error        string       `json:"error"`
		Dependencies []dependency `json:"dependencies"`
	} `json:"modules"`
}

type dependency struct {
	Specifier string    `json:"specifier"`
	Code      *resolved `json:"code"`
	Type      *resolved `json:"type"`
	IsDynamic bool      `json:"isDynamic"`
}

type resolved struct {
	Specifier string `json:"specifier"`
	Span      struct {
		Start struct {
			Line      int `json:"line"`
			Character int `json:"character"`
		} `json:"start"`
	} `json:"span"`
}

func rootImports(s *stage, out []byte) ([]Import, error) {
	var graph moduleGraph
	if err := json.NewDecoder(strings.NewReader(string(out))).Decode(&graph); err != nil {
		return nil, fmt.Errorf("the answer of `deno info` is not JSON: %w", err)
	}
	for _, module := range graph.Modules {
		if !isFile(module.Specifier, s.source()) {
			continue
		}
		if module.Error != "" {
			if found := syntaxError(s, module.Error); found != nil {
				return nil, found
			}
			return nil, errors.New(s.hide(cleanText([]byte(module.Error))))
		}
		var found []Import
		for _, d := range module.Dependencies {
			found = append(found, d.imports(s)...)
		}
		slices.SortStableFunc(found, func(a, b Import) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return found, nil
	}
	return nil, errors.New("the answer of `deno info` lacks the source itself")
}

// imports gives one Import for the code that a dependency names and one for its
// types. A pragma for types names another module than the import under it.
func (d dependency) imports(s *stage) []Import {
	var found []Import
	if d.Code != nil {
		found = append(found, d.Code.at(d.Specifier, d.IsDynamic, false))
	}
	if d.Type != nil {
		specifier := d.Specifier
		if d.Code != nil {
			specifier = asWritten(s, d.Type.Specifier)
		}
		found = append(found, d.Type.at(specifier, false, true))
	}
	if len(found) == 0 {
		found = append(found, Import{Specifier: d.Specifier, Dynamic: d.IsDynamic})
	}
	return found
}

func (r *resolved) at(specifier string, dynamic, typeOnly bool) Import {
	start := r.Span.Start
	return Import{Specifier: specifier, Line: start.Line + 1, Column: start.Character + 1, Dynamic: dynamic, TypeOnly: typeOnly}
}

// asWritten undoes our import map for a local file: below the source's folder
// it is relative, elsewhere a file URL.
func asWritten(s *stage, specifier string) string {
	if rest, ok := strings.CutPrefix(specifier, blackhole); ok {
		specifier = "file:///" + rest
	}
	if rest, ok := strings.CutPrefix(specifier, fileURL(filepath.Dir(s.source()))+"/"); ok {
		return "./" + rest
	}
	return specifier
}
