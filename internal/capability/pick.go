package capability

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoVersion means that what a person wrote names no version of a capability,
// or more than one.
var ErrNoVersion = errors.New("no such version")

// shortestHash is how many digits of a hash a person must give at least.
const shortestHash = 4

// pick finds the version that a person means: a number, number-hash as the files
// are called, or the beginning of a hash.
func (r *Registry) pick(name, text string) (*version, error) {
	wanted, hash, _ := strings.Cut(text, "-")
	_, numbered := parseNumber(wanted)
	if !numbered {
		wanted, hash = "", text
	}
	var found []keptVersion
	kept := keptVersions(r.root, name)
	for _, k := range kept {
		if (wanted == "" || k.number.String() == wanted) && hashBegins(k.hash, hash) && (numbered || len(hash) >= shortestHash) {
			found = append(found, k)
		}
	}
	switch {
	case !numbered && len(hash) < shortestHash:
		return nil, fmt.Errorf("%w: %s is no number of a version, and of a hash at least %d digits are needed; there is %s", ErrNoVersion, quote(text), shortestHash, orNothing(labels(kept)))
	case len(found) == 0:
		return nil, fmt.Errorf("%w: %s is none of %s", ErrNoVersion, quote(text), orNothing(labels(kept)))
	case len(found) > 1 && !sameHash(found):
		return nil, fmt.Errorf("%w: %s may be %s; name one of them", ErrNoVersion, quote(text), strings.Join(labels(found), " or "))
	}
	newest := found[len(found)-1]
	v, err := readVersion(r.root, newest.base)
	if err != nil {
		return nil, &RefusedError{name, newest.number.String(), err}
	}
	return v, nil
}

// hashBegins compares the 12 digits of a file name with the beginning of a hash,
// which may be longer.
func hashBegins(hash, beginning string) bool {
	n := min(len(hash), len(beginning))
	return strings.EqualFold(hash[:n], beginning[:n])
}

func sameHash(kept []keptVersion) bool {
	for _, k := range kept {
		if k.hash != kept[0].hash {
			return false
		}
	}
	return true
}

// labels name versions; those that share a number with another one by their hash
// too.
func labels(kept []keptVersion) []string {
	times := map[number]int{}
	for _, k := range kept {
		times[k.number]++
	}
	var out []string
	for _, k := range kept {
		label := k.number.String()
		if times[k.number] > 1 {
			label += "-" + k.hash
		}
		out = append(out, label)
	}
	return out
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "its versions: it has none"
	}
	return strings.Join(list, ", ")
}
