package capability

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

const (
	hintLocal  = "a capability is one module: put what it needs into its own source"
	hintRemote = "other modules are imported as npm:name@version, jsr:@scope/name@version or https://host/path"
)

var urlScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)

// checkImports refuses every module but Deno's built-in ones and those that can
// be locked. It returns a
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
	case isRemote(specifier):
		return judgeRemote(specifier)
	case scheme == "http":
		return fmt.Sprintf("import of %s, which anybody on the way can change", shown), "write https:"
	case scheme == "data" || scheme == "blob":
		return fmt.Sprintf("import of a %s: URL", scheme), hintLocal
	case scheme != "":
		return fmt.Sprintf("import of %s: modules of this kind do not exist here", shown), hintRemote
	default:
		return fmt.Sprintf("import of the bare name %s, which names no module", shown), fmt.Sprintf("a module of Node is written with its prefix (%s), one of npm too (%s)", quote("node:"+specifier), quote("npm:"+specifier))
	}
}

// isRemote reports whether a module is fetched and locked at registration.
func isRemote(specifier string) bool {
	for _, scheme := range []string{"npm:", "jsr:", "https:"} {
		if strings.HasPrefix(specifier, scheme) {
			return true
		}
	}
	return false
}

var packagePattern = regexp.MustCompile(`^(?:npm:/?(?:@[a-z0-9~_-][a-z0-9~_.-]*/)?[A-Za-z0-9~_-][A-Za-z0-9~_.-]*|jsr:/?@[a-z0-9-]+/[a-z0-9-]+)(?:@[^/\s,]+)?(?:/[^\s]*)?$`)

// judgeRemote says why a remote module may not be imported, or "".
func judgeRemote(specifier string) (why, hint string) {
	shown := quote(specifier)
	if !strings.HasPrefix(specifier, "https:") {
		if !packagePattern.MatchString(specifier) {
			return fmt.Sprintf("import of %s, which names no package", shown), hintRemote
		}
		return "", ""
	}
	u, err := url.Parse(specifier)
	if err != nil || u.Host == "" {
		return fmt.Sprintf("import of %s, which is no URL", shown), hintRemote
	}
	if u.User != nil {
		return fmt.Sprintf("import of a module at %s with a user or a password", quote(u.Host)), "leave them out"
	}
	if err := sandbox.CheckHost(u.Host); err != nil || strings.Contains(u.Host, "*") {
		return fmt.Sprintf("import of %s: %v", shown, err), "import from a public host"
	}
	return "", ""
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
