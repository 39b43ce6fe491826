package sandbox

import (
	"regexp"
	"strings"
)

const neverResolved = "Top-level await promise never resolved"

var (
	framePattern = regexp.MustCompile(`^\s+at `)
	caretPattern = regexp.MustCompile(`^\s*[\^~]+\s*$`)
	grantPattern = regexp.MustCompile(`, run again with the --allow-(\w+) flag`)
	notInCache   = regexp.MustCompile(`Failed loading \S+ for package "[^"\n]*"\n\s+0: npm package not found in cache: ("[^"\n]*"), --cached-only is specified\.`)
	outOfDate    = regexp.MustCompile(`The lockfile is out of date\. Run .*\n(?:changes:\n(?:\s*\d* \|.*\n?)*)?`)
	spawnPattern = regexp.MustCompile(`(Failed to spawn '[^'\n]*': )entity not found`)
)

// authorError turns Deno's report of an error, with the paths of the stage
// hidden already, into what the author of the capability needs: the message,
// the line of the source, and the calls in it.
func authorError(report string) string {
	if strings.Contains(report, "error: "+neverResolved) {
		return neverResolved + ": it waits for something that can no longer happen, such as a promise that nobody resolves"
	}
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(report)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case framePattern.MatchString(line) && strings.Contains(line, "tendril:bootstrap"):
			lines = dropExcerpt(lines)
		case framePattern.MatchString(line) && (strings.Contains(line, "(ext:") || strings.Contains(line, "at ext:")):
			// a call inside of Deno
		default:
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines, "\n")
	for _, prefix := range []string{"error: ", "Uncaught ", "(in promise) "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return advise(text)
}

// notLocked is said of a module that is not among those of the lock.
const notLocked = "not among the locked dependencies of this capability: name the module in an import of the source, and register it again"

// advise puts what an author can do in the place of Deno's own advice, which is
// about flags that nobody here can pass.
func advise(text string) string {
	// Deno looks for the program before it looks at the permission.
	text = spawnPattern.ReplaceAllString(text, "${1}a capability cannot start processes")
	text = notInCache.ReplaceAllString(text, "the npm package $1 is "+notLocked)
	text = outOfDate.ReplaceAllString(text, "this module is "+notLocked+"\n")
	return grantPattern.ReplaceAllStringFunc(text, func(advice string) string {
		switch kind := grantPattern.FindStringSubmatch(advice)[1]; kind {
		case "import":
			return " (" + notLocked + ")"
		case "net":
			return " (not among the permissions of this capability; a public host can be declared in permissions.net)"
		case "read", "write":
			return " (not among the permissions of this capability; files of the workspace can be declared in permissions." + kind + ", protected ones and others cannot)"
		}
		return " (not among the permissions of this capability, and it cannot be granted)"
	})
}

// dropExcerpt takes away the line of source and the caret under it that belong
// to a call which is not shown.
func dropExcerpt(lines []string) []string {
	if n := len(lines); n >= 3 && caretPattern.MatchString(lines[n-1]) {
		return lines[:n-2]
	}
	return lines
}
