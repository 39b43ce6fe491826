package capability

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// mergeConflict is an index with git's conflict markers, taken apart.
type mergeConflict struct {
	sides [2][]byte
	names [2]string // as git wrote them: HEAD, a branch
}

// findConflict returns nil when data holds no conflict. A line of JSON never
// begins with such a marker: strings have no raw line breaks.
func findConflict(data []byte) *mergeConflict {
	if !bytes.Contains(data, []byte("<<<<<<< ")) {
		return nil
	}
	const both, ours, base, theirs = 0, 1, 2, 3
	var c mergeConflict
	in, complete := both, false
	for line := range bytes.Lines(data) {
		text := strings.TrimRight(string(line[:min(len(line), 200)]), "\r\n")
		switch {
		case in == both && strings.HasPrefix(text, "<<<<<<< "):
			in, c.names[0] = ours, text[8:]
		case in == ours && strings.HasPrefix(text, "||||||| "):
			in = base
		case (in == ours || in == base) && text == "=======":
			in = theirs
		case in == theirs && strings.HasPrefix(text, ">>>>>>> "):
			in, c.names[1], complete = both, text[8:], true
		default:
			if in == both || in == ours {
				c.sides[0] = append(c.sides[0], line...)
			}
			if in == both || in == theirs {
				c.sides[1] = append(c.sides[1], line...)
			}
		}
	}
	if !complete {
		return nil
	}
	return &c
}

// index is what both sides agree on; the capabilities on which they differ are
// there too, and marked.
func (c *mergeConflict) index() *index {
	ix := emptyIndex()
	ours, errOurs := decodeIndex(c.sides[0], nil)
	theirs, errTheirs := decodeIndex(c.sides[1], nil)
	intro := fmt.Sprintf("tools/index.json holds a git conflict between %s and %s", quote(c.names[0]), quote(c.names[1]))
	if errOurs != nil || errTheirs != nil {
		ix.conflict = intro
		return ix
	}
	ix.fields = ours.fields
	var differences []string
	for _, name := range union2(ours.names(), theirs.names()) {
		a, b := ours.find(name), theirs.find(name)
		e := a
		if e == nil {
			e = b
		}
		if a == nil || b == nil || canonical(a) != canonical(b) {
			difference := fmt.Sprintf("%s is %s in %s and %s in %s", name, side(a), quote(c.names[0]), side(b), quote(c.names[1]))
			differences = append(differences, difference)
			e.conflict = intro + ": " + difference
			ix.disputes = append(ix.disputes, dispute{name, a, b})
		}
		ix.entries = append(ix.entries, e)
	}
	ix.conflict = intro
	if len(differences) > 0 {
		ix.conflict += ": " + strings.Join(differences[:min(5, len(differences))], "; ")
	}
	return ix
}

// dispute is a capability of which an index tells two things; nil is an absent
// entry.
type dispute struct {
	name         string
	ours, theirs *entry
}

func side(e *entry) string {
	if e == nil {
		return "absent"
	}
	return e.describe()
}

func union2(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
