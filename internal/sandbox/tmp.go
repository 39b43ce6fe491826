package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Deno lets a run rename a granted folder as a whole into another one, away
// from the rules about what is in it. So no two writable places may lie on one
// device, unless one is inside of the other, where a rename cannot work, or
// there are no such rules.

// placeTmp makes the folder for temporary files writable: where it is, or on
// another device than the writable folders, else inside of one of them. That
// last one can be seen by the run, so it is made only for a source that has to
// do with temporary files.
func (s *stage) placeTmp(writable []string, source []byte) error {
	for _, base := range []string{s.root, os.Getenv("XDG_RUNTIME_DIR")} {
		real, err := filepath.EvalSymlinks(base)
		movable := func(root string) bool { return sameDevice(root, real) }
		if base == "" || err != nil || expressible(real) != nil || slices.ContainsFunc(writable, movable) {
			continue
		}
		if dir, err := os.MkdirTemp(real, "tendril-tmp-"); err == nil {
			s.tmpWritable = true
			return s.moveTmp(dir)
		}
	}
	if !temporary.Match(source) {
		return nil
	}
	var problems []error
	for _, root := range writable {
		dir, err := os.MkdirTemp(root, ".tendril-tmp-")
		if err == nil {
			return s.moveTmp(dir)
		}
		problems = append(problems, err)
	}
	return fmt.Errorf("no place for the temporary files of the run: %w", errors.Join(problems...))
}

// moveTmp uses another folder, and notes where it is, for a sweep.
func (s *stage) moveTmp(dir string) error {
	s.tmpDir = dir
	return os.WriteFile(s.tmpNote(), []byte(dir), 0o400)
}

// tmpName are the names that placeTmp gives.
var tmpName = regexp.MustCompile(`^\.?tendril-tmp-\d+$`)

var temporary = regexp.MustCompile(`\btmp\b|\btmpdir\b|TMPDIR|makeTemp|mkdtemp`)

// checkMoves refuses a grant with two writable folders of which one has rules
// about its inside and could be moved into the other.
func (a *access) checkMoves() error {
	for i, from := range a.write {
		closed := slices.ContainsFunc(a.denyWrite, func(path string) bool { return within(path, from) })
		for j, to := range a.write {
			if closed && i != j && !within(to, from) && !within(from, to) && sameDevice(from, to) {
				return fmt.Errorf("cannot grant writing to both %s and %s: the first holds places that stay closed, and could be moved into the second; grant folders inside of it instead", from, to)
			}
		}
	}
	return nil
}
