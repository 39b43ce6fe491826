package capability

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

const (
	hintLocal  = "a capability is one module: put what it needs into its own source"
	hintRemote = "remote dependencies are not built yet: use Web APIs, the Deno namespace and node: modules"
)

var urlScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)

// checkImports refuses every module but Deno's built-in ones. It returns a
// diagnostic for each import that may not be, and the hint that goes with them.
func checkImports(imports []sandbox.Import) (bad []sandbox.Diagnostic, hint string) {
	for _, imp := range imports {
		why, how := judgeSpecifier(imp.Specifier)
		if why == "" {
			continue
		}
		bad = append(bad, sandbox.Diagnostic{Line: imp.Line, Column: imp.Column, Message: why})
		if !strings.Contains(hint, how) {
			hint = strings.TrimPrefix(hint+"; "+how, "; ")
		}
	}
	return bad, hint
}

// judgeSpecifier says why a module may not be imported, or "".
func judgeSpecifier(specifier string) (why, hint string) {
	shown := quote(specifier)
	scheme := strings.ToLower(strings.TrimSuffix(urlScheme.FindString(specifier), ":"))
	switch {
	case scheme == "node":
		return "", ""
	case specifier == "":
		return "an import whose module is computed when the code runs", "name the module in the import; " + hintLocal
	case strings.HasPrefix(specifier, ".") || strings.HasPrefix(specifier, "/") || scheme == "file" || len(scheme) == 1:
		return fmt.Sprintf("import of the local file %s", shown), hintLocal + "; capabilities cannot import each other either"
	case scheme == "npm" || scheme == "jsr" || scheme == "https" || scheme == "http":
		return fmt.Sprintf("import of the remote module %s", shown), hintRemote
	case scheme == "data" || scheme == "blob":
		return fmt.Sprintf("import of a %s: URL", scheme), hintLocal
	case scheme != "":
		return fmt.Sprintf("import of %s: modules of this kind do not exist here", shown), hintRemote
	default:
		return fmt.Sprintf("import of the bare name %s, which names no module", shown), fmt.Sprintf("a module of Node is written with its prefix (%s, if it is one); %s", quote("node:"+specifier), hintRemote)
	}
}

var dynamicImport = regexp.MustCompile(`\bimport\s*\(`)

// findComputedImports returns the imports whose module is an expression: no
// reader of the source can know what they load.
func findComputedImports(source string) []sandbox.Import {
	var found []sandbox.Import
	code := maskText(source)
	for _, at := range dynamicImport.FindAllStringIndex(code, -1) {
		argument := code[at[1]:]
		end := strings.IndexAny(argument, "),")
		if end < 0 {
			continue
		}
		if strings.TrimSpace(argument[:end]) != "" || strings.Contains(source[at[1]:at[1]+end], "`") {
			line, column := position(source, at[0])
			found = append(found, sandbox.Import{Line: line, Column: column, Dynamic: true})
		}
	}
	return found
}
