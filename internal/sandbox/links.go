package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds the deny rules of one run.
const maxLinks = 4096

// maxProtected bounds the places that one run has to close.
const maxProtected = 2000

// links finds what Deno's permissions do not see: they are checked against the
// path that is asked for, not against the place where a symbolic link in it
// leads. Each link whose target is not granted is denied. And since a rename
// would take a link out of its deny rule, or a relative link to another
// meaning, the top folder that holds such a link cannot be written at all.
type links struct {
	canRead  func(path string) bool
	canWrite func(path string) bool

	denyRead, denyWrite []string
	first               string

	protected []string // by their names, below the top of the workspace
}

// scan walks everything below a granted root but what is closed both ways. A
// folder that cannot be listed is denied: the run might open it up.
func (l *links) scan(ctx context.Context, root string) error {
	info, err := os.Lstat(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for links in %s: %w", root, err)
	}
	if !info.IsDir() {
		return nil
	}
	return l.scanDir(ctx, root, "")
}

// scanDir looks at one folder; top is the entry of the root that holds it.
func (l *links) scanDir(ctx context.Context, dir, top string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := readDir(dir)
	if err != nil {
		l.deny(dir, true, true)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		topPath := top
		if top == "" {
			topPath = path
		}
		switch {
		case protectedName(entry.Name(), dir):
			l.protected = append(l.protected, path)
		case entry.Type()&(fs.ModeSymlink|fs.ModeIrregular) != 0:
			l.link(path, topPath)
		case entry.IsDir() && (l.canRead(path) || l.canWrite(path)):
			if err := l.scanDir(ctx, path, topPath); err != nil {
				return err
			}
		}
	}
	if len(l.protected) > maxProtected {
		return fmt.Errorf("more than %d protected files, such as %s: grant a smaller folder", maxProtected, l.protected[0])
	}
	if len(l.denyRead)+len(l.denyWrite) > maxLinks {
		return fmt.Errorf("more than %d links lead outside of what the capability may use, such as %s: remove them, or grant a smaller folder", maxLinks, l.first)
	}
	return nil
}

// link judges one symbolic link. Deny rules name no place inside of a place
// that is denied already.
func (l *links) link(path, top string) {
	target, err := realPath(path)
	read := err == nil && l.canRead(target)
	write := err == nil && l.canWrite(target)
	l.deny(path, !read, !write)
	if path != top && (!read || !write || climbs(path)) {
		l.deny(top, false, true)
	}
}

func (l *links) deny(path string, read, write bool) {
	if l.first == "" {
		l.first = path
	}
	if read {
		l.denyRead = append(l.denyRead, path)
	}
	if n := len(l.denyWrite); write && (n == 0 || l.denyWrite[n-1] != path) {
		l.denyWrite = append(l.denyWrite, path)
	}
}

// climbs says whether a link is relative and leads upwards.
func climbs(path string) bool {
	target, err := os.Readlink(path)
	return err != nil || !filepath.IsAbs(target) && strings.Contains(filepath.ToSlash(target), "..")
}

// readDir lists a folder without sorting it.
func readDir(path string) ([]fs.DirEntry, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err == io.EOF {
		err = nil
	}
	return entries, err
}
