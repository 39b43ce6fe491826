package sandbox

import (
	"fmt"
	"regexp"
	"strconv"
)

// TestedVersion is the Deno that this package was measured with and that
// [Fetch] brings. MinVersion is the oldest one that is accepted: earlier ones
// lack flags that we need or have known ways around deny rules.
const (
	TestedVersion = "2.9.6"
	MinVersion    = "2.9.6"
)

var versionPattern = regexp.MustCompile(`^(?:deno )?(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b`)

// parseVersion reads "2.9.6" or the first line of `deno --version`.
func parseVersion(text string) (version [3]int, err error) {
	match := versionPattern.FindStringSubmatch(text)
	if match == nil {
		return version, fmt.Errorf("no version of deno in %.80q", text)
	}
	for i := range version {
		version[i], _ = strconv.Atoi(match[i+1]) // at most six digits
	}
	return version, nil
}

func formatVersion(v [3]int) string {
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

// fits says whether a version is at least [MinVersion].
func fits(version string) bool {
	found, err := parseVersion(version)
	if err != nil {
		return false
	}
	least, _ := parseVersion(MinVersion)
	for i := range found {
		if found[i] != least[i] {
			return found[i] > least[i]
		}
	}
	return true
}
