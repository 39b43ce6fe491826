package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	checkTimeout = 60 * time.Second
	checkHeapMB  = 1024
)

// SyntaxError says that a source cannot be parsed.
type SyntaxError struct{ Diagnostic }

// Error tells what is wrong and where.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("syntax error at line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// blackhole is where all imports but those of the staged files are sent. No
// such host exists and nothing remote is allowed: they end there.
const blackhole = "https://local.invalid/"

// Check type-checks a source without running any of it. The source may use two
// globals: args, of the TypeScript type argsType ("" means any), and
// __workspace, a string. Parameters without a type and what a catch clause
// catches are any.
//
// Nothing is read or fetched but the source and the modules of its lock, nil for
// none: any other that it imports counts as missing, except Deno's own. The
// diagnostics are those of the source, none when it is fine. A source that
// cannot be parsed gives a [*SyntaxError].
func (r *Runner) Check(ctx context.Context, name string, source, lock []byte, argsType string) ([]Diagnostic, error) {
	modules, err := r.modules(ctx, name, source, lock)
	if err != nil {
		return nil, fmt.Errorf("cannot check %s: its dependencies: %w", name, err)
	}
	stage, err := r.stageCheck(name, source, modules)
	if err != nil {
		return nil, fmt.Errorf("cannot check %s: %w", name, err)
	}
	defer stage.Close()
	globals, err := writeGlobals(stage, argsType)
	if err != nil {
		return nil, fmt.Errorf("cannot check %s: %w", name, err)
	}
	out, code, err := r.deno(ctx, stage, "check", "--cached-only", fileURL(stage.source()), fileURL(globals))
	if err != nil {
		return nil, fmt.Errorf("cannot check %s: %w", name, err)
	}
	if code == 0 {
		return nil, nil
	}
	if found := syntaxError(stage, out); found != nil {
		return nil, found
	}
	if found := diagnostics(stage, out); len(found) > 0 {
		return found, nil
	}
	if strings.Contains(out, fileURL(globals)) {
		return nil, fmt.Errorf("cannot check %s: the type of its args is not TypeScript: %s", name, tail(argsType, 500))
	}
	return []Diagnostic{{Message: "a module that it imports cannot be loaded for the check"}}, nil
}

// stageCheck makes a stage with a configuration that turns all imports of files
// but the source itself away.
func (r *Runner) stageCheck(name string, source []byte, modules *modules) (*stage, error) {
	if r.Deno.Path == "" {
		return nil, fmt.Errorf("%w; run `tendril setup`", ErrNoDeno)
	}
	s, err := newStage(name, source)
	if err != nil {
		return nil, err
	}
	if err := s.addModules(modules); err != nil {
		s.Close()
		return nil, err
	}
	folder := fileURL(filepath.Dir(s.source())) + "/"
	config := fmt.Sprintf(`{"imports": {"file:///": %q, %q: %[2]q},
 "compilerOptions": {"noImplicitAny": false, "useUnknownInCatchVariables": false}}`, blackhole, folder)
	if err := os.WriteFile(configPath(s), []byte(config), 0o600); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func configPath(s *stage) string { return filepath.Join(s.root, "boot", "deno.json") }

// writeGlobals declares what the bootstrap defines.
func writeGlobals(s *stage, argsType string) (path string, err error) {
	if strings.TrimSpace(argsType) == "" {
		argsType = "any"
	}
	path = filepath.Join(s.root, "boot", "globals.d.ts")
	text := "declare var args: " + argsType + "\n;\ndeclare var __workspace: string;\n"
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// deno runs a subcommand that only looks at the staged files. It returns
// stdout, and stderr after it.
func (r *Runner) deno(ctx context.Context, s *stage, subcommand string, args ...string) (out string, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	flags := append([]string{subcommand, "--config=" + configPath(s), "--node-modules-dir=none"}, s.modules.flags(s)...)
	var stdout, stderr boundedBuffer
	state, err := r.look(ctx, s, append(flags, args...), &stdout, &stderr)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", 0, fmt.Errorf("`deno %s` was stopped after %s: %w", subcommand, checkTimeout, ctx.Err())
	case ctx.Err() != nil:
		return "", 0, ctx.Err()
	case err != nil:
		return "", 0, err
	case stdout.More || stderr.More:
		return "", 0, fmt.Errorf("`deno %s` printed more than %d bytes", subcommand, boundedBytes)
	}
	code, signaled := exitCode(state)
	if signaled {
		return "", 0, fmt.Errorf("`deno %s` died: %s", subcommand, state)
	}
	return string(stdout.Bytes()) + "\n" + string(stderr.Bytes()), code, nil
}

// look runs Deno on the stage alone, in the operating system layer if that is in
// force.
func (r *Runner) look(ctx context.Context, s *stage, args []string, stdout, stderr io.Writer) (*os.ProcessState, error) {
	env := append(environment(s), "DENO_V8_FLAGS=--max-old-space-size="+strconv.Itoa(checkHeapMB))
	inside := func() (*os.ProcessState, error) {
		limits := Limits{RSSMB: 2 * checkHeapMB}.WithDefaults()
		spec := r.spec(args, env, s.root, s.places(limits))
		spec.Limits = limits.kernel()
		return newCell(r.Self, nil).run(order{ctx: ctx, spec: spec}, nil, stdout, stderr)
	}
	if state, layer, err := r.inLayer(ctx, nil, inside); layer.On {
		return state, err
	}
	if err := s.copyModules(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, r.Deno.Path, args...)
	cmd.Dir = s.root
	cmd.Env = env
	cmd.Stdout = stdout
	cmd.Stderr = stderr
	return runGroup(cmd, nil)
}

var (
	complaintPattern = regexp.MustCompile(`^(?:error: )?(TS\d+) \[[A-Z]+\]: (.*)$`)
	placePattern     = regexp.MustCompile(`^    at (\S+):(\d+):(\d+)$`)
	syntaxPattern    = regexp.MustCompile(`^(?:error: )?(?:Uncaught )?SyntaxError: (.*)$`)
	missingPattern   = regexp.MustCompile(`^error: (.*)$`)
)

// diagnostics reads what `deno check` prints. For each complaint that is a code
// and a message, more lines of message, the line of source with a marker under
// it, and the place. Complaints about other files are dropped.
func diagnostics(s *stage, out string) []Diagnostic {
	var found []Diagnostic
	var open *Diagnostic
	for line := range strings.Lines(out) {
		line = strings.TrimRight(cleanText([]byte(line)), "\n")
		if m := complaintPattern.FindStringSubmatch(line); m != nil {
			open = &Diagnostic{Code: m[1], Message: s.hide(m[2])}
			continue
		}
		if m := missingPattern.FindStringSubmatch(line); m != nil && open == nil {
			open = &Diagnostic{Message: missing(m[1])}
			continue
		}
		if m := placePattern.FindStringSubmatch(line); m != nil && open != nil {
			if isFile(m[1], s.source()) {
				open.Line, open.Column = atoi(m[2]), atoi(m[3])
				found = append(found, *open)
			}
			open = nil
			continue
		}
		if open != nil && strings.HasPrefix(line, "  ") && open.Code != "" && explains(line) {
			open.Message += "\n" + s.hide(line)
		}
	}
	slices.SortStableFunc(found, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return found
}

var explainPattern = regexp.MustCompile(`^(?:  )+[A-Z'"].*\.$`)

// explains tells a further line of a message, which is an indented sentence,
// from a line of source.
func explains(line string) bool { return explainPattern.MatchString(line) }

// missing words the one kind of complaint that stops a check before the types:
// an import that leads nowhere.
func missing(message string) string {
	if strings.Contains(message, "local.invalid") {
		return "this import is a local file, which a capability cannot have"
	}
	return grantPattern.ReplaceAllString(message, "")
}

// syntaxError reads Deno's report of a source that cannot be parsed, nil when
// it is none or about another file.
func syntaxError(s *stage, out string) *SyntaxError {
	var open *SyntaxError
	for line := range strings.Lines(out) {
		line = strings.TrimRight(cleanText([]byte(line)), "\n")
		if m := syntaxPattern.FindStringSubmatch(line); m != nil && open == nil {
			open = &SyntaxError{Diagnostic{Message: s.hide(m[1])}}
			continue
		}
		if m := placePattern.FindStringSubmatch(line); m != nil && open != nil {
			if !isFile(m[1], s.source()) {
				return nil
			}
			open.Line, open.Column = atoi(m[2]), atoi(m[3])
			return open
		}
	}
	return nil
}

func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
