package capability

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxName       = 64  // of a new capability
	maxLoadedName = 200 // of one that exists
)

var nameRule = regexp.MustCompile(`^[a-z0-9_]+$`)

// validName reports whether name can be that of a stored capability. Such a
// name is safe as a file name in tools/.
func validName(name string) bool {
	return len(name) <= maxLoadedName && nameRule.MatchString(name)
}

// checkNewName says what is wrong with the name of a new capability, or "".
func checkNewName(name string) string {
	switch {
	case name == "":
		return "definition.name is blank"
	case !nameRule.MatchString(name):
		return fmt.Sprintf("definition.name is %s; a name is snake_case: only a-z, 0-9 and _", quote(name))
	case len(name) > maxName:
		return fmt.Sprintf("definition.name has %d characters; at most %d are allowed", len(name), maxName)
	case isDeviceName(name):
		return fmt.Sprintf("definition.name is %q, which is a device on Windows; choose another name", name)
	}
	return ""
}

var deviceNames = []string{"con", "prn", "aux", "nul"}

func isDeviceName(name string) bool {
	if slices.Contains(deviceNames, name) {
		return true
	}
	digit := strings.TrimPrefix(strings.TrimPrefix(name, "com"), "lpt")
	return len(name) == 4 && len(digit) == 1 && digit >= "0" && digit <= "9"
}

// number is a version number: major.minor.patch.
type number struct{ major, minor, patch int }

var firstNumber = number{1, 0, 0}

func parseNumber(s string) (number, bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return number{}, false
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 || v > 1e9 || strconv.Itoa(v) != p {
			return number{}, false
		}
		n[i] = v
	}
	return number{n[0], n[1], n[2]}, true
}

func (n number) String() string { return fmt.Sprintf("%d.%d.%d", n.major, n.minor, n.patch) }

func (n number) compare(m number) int {
	return slices.Compare([]int{n.major, n.minor, n.patch}, []int{m.major, m.minor, m.patch})
}

// next is the number after n: always a new minor.
func (n number) next() number {
	if n == (number{}) {
		return firstNumber
	}
	return number{n.major, n.minor + 1, 0}
}

// near returns up to three of names that look like name, best first.
func near(name string, names []string) []string {
	type scored struct {
		name     string
		distance int
	}
	name = clip(strings.ToLower(name), maxName)
	var found []scored
	for _, n := range names {
		d := distance(name, clip(n, maxName))
		if d <= max(2, len(n)/3) || (len(name) > 2 && strings.Contains(n, name)) {
			found = append(found, scored{n, d})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return a.distance - b.distance })
	var out []string
	for _, s := range found[:min(3, len(found))] {
		out = append(out, s.name)
	}
	return out
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
