package sandbox

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tendril-agent/tendril/internal/egress"
)

// maxReport bounds what is repeated of Deno's own account.
const maxReport = 600

// problems tell the kinds of failures by what Deno says, the first that fits.
var problems = []struct {
	problem Problem
	pattern *regexp.Regexp
	advice  string
}{
	{TooYoung, regexp.MustCompile(`(?i)minimum dependency age|newer than the specified|younger than`),
		"it was published less than a day ago: such releases are not taken, since hostile ones are found and withdrawn in their first hours; name an older version, or wait"},
	{Changed, regexp.MustCompile(`(?i)integrity check failed|checksum|mismatched|lockfile is out of date|lock file is out of date|integrity mismatch`),
		"its bytes are not those that its hash promises, in the lock or at the registry: it was changed, or something on the way is not what it seems. Nothing of it was kept; find out why before using it"},
	{Forbidden, regexp.MustCompile(`(?i)requires import access|importing .* blocked|local\.invalid|cannot import a file|remote modules are not allowed to import local`),
		"it asks for a module from another host, or a local file; import what is needed directly, from npm:, jsr: or a named https: host"},
	{Unreachable, regexp.MustCompile(`(?i)bad response: 40[13]|40[13] (?:unauthorized|forbidden)`),
		"its registry wants a login, or refuses the one that it gets; a person can write one into ~/.npmrc, as in //host/:_authToken=…"},
	{NotFound, regexp.MustCompile(`(?i)npm package ".*" does not exist|could not find npm package|could not find version|could not find a matching package|package .* not found|module not found|404 not found|was not found|does not exist|jsr package not found|could not find`),
		"check the name and the version"},
	{Unreachable, regexp.MustCompile(`(?i)failed loading|error sending request|failed to fetch|connection|timed out|502 bad gateway|503|500 internal|import .* failed`),
		"its registry or server cannot be reached; once it is locked, no network is needed"},
}

// dependencyError words a failure of `deno cache`.
func dependencyError(report string, decisions []egress.Decision) error {
	lines := strings.Split(report, "\n")
	var kept []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "Download ") || strings.HasPrefix(line, "Initialize ") || strings.HasPrefix(line, "at tendril:") {
			continue
		}
		kept = append(kept, strings.TrimPrefix(line, "error: "))
	}
	said := strings.Join(kept, "\n")
	text := said
	if len(text) > maxReport {
		text = strings.ToValidUTF8(text[:maxReport], "") + "…"
	}
	refused := refusals(decisions)
	for _, p := range problems {
		if p.pattern.MatchString(said) {
			return &DependencyError{p.problem, fmt.Sprintf("%s: %s%s", text, p.advice, refused)}
		}
	}
	return &DependencyError{Unusable, text + refused}
}
