package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many links a path may go through: as many as [os.Root] takes.
const maxLinks = 8

// A place is where a path leads after all links. It holds the folders on the
// way open, so that nothing that happens to their names meanwhile leads
// elsewhere: what is done there is done with name, in the last of the folders.
type place struct {
	path    string
	folders []folder // the workspace first
	name    string   // "" for the last folder itself
	info    fs.FileInfo

	marks     marks
	protected *ProtectedError // met on the way, in the name of a link
}

// folder is an open folder below the workspace.
type folder struct {
	*os.Root
	name string
	info fs.FileInfo
	git  fs.FileInfo // what ".git" in it is, or nil
}

// find follows a path, link by link. The last name may be missing; then info is
// nil. The caller closes the place.
func (w *Workspace) find(path string) (*place, error) {
	todo, err := parse(path)
	if err != nil {
		return nil, err
	}
	p := &place{path: path, marks: w.marks()}
	if err := p.walk(w.root, todo); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *place) walk(root *os.Root, todo []string) error {
	if err := p.enter(root, "", nil); err != nil {
		return err
	}
	linked := false // the last name is that of a link's target
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if name == ".." { // only in a link
			if err := p.leave(); err != nil {
				return err
			}
			continue
		}
		info, err := p.last().Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(todo) == 0 && linked:
			return p.refuse("is a link that leads nowhere")
		case errors.Is(err, fs.ErrNotExist) && len(todo) == 0:
			p.name = name
			return nil
		case err != nil:
			return p.failed(err)
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return p.refuse("goes through too many links")
			}
			linked = linked || len(todo) == 0
			if todo, err = p.follow(name, info, todo); err != nil {
				return err
			}
		case len(todo) == 0:
			p.name, p.info = name, info
		default:
			if err := p.enter(p.last().Root, name, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow puts the names of a link's target before the rest. That a protected
// name is a link does not open what it leads to.
func (p *place) follow(name string, info fs.FileInfo, rest []string) ([]string, error) {
	if p.protected == nil {
		p.protected = p.marks.protection(p.path, p.folders, name, info)
	}
	target, err := p.last().Readlink(name)
	if err != nil {
		return nil, p.failed(err)
	}
	if target == "" || os.IsPathSeparator(target[0]) || filepath.IsAbs(target) || filepath.VolumeName(target) != "" {
		return nil, p.refuse("is or goes through a link with an absolute target, which is not followed")
	}
	names := make([]string, 0, len(rest)+1)
	for _, name := range strings.Split(filepath.ToSlash(target), "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return append(names, rest...), nil
}

// enter opens a folder of from; "" is from itself. It has to be the one that
// info describes: a link that took its name meanwhile is not followed.
func (p *place) enter(from *os.Root, name string, info fs.FileInfo) error {
	if info != nil && !info.IsDir() {
		return p.refuse("is below " + kindName(info.Mode()) + " and not below a folder")
	}
	if len(p.folders) > maxDepth {
		return p.refuse("goes through too many folders")
	}
	root, err := from.OpenRoot(name + "/.") // the dot keeps it from opening, and waiting for, a pipe
	if name == "" {
		root, err = from.OpenRoot(".")
	}
	if err != nil {
		return p.failed(err)
	}
	opened, err := root.Stat(".")
	if err == nil && info != nil && !os.SameFile(opened, info) {
		err = errMoved
	}
	if err != nil {
		root.Close()
		return p.failed(err)
	}
	git, _ := root.Stat(".git") // what it is not, nothing can be the same as
	p.folders = append(p.folders, folder{Root: root, name: name, info: opened, git: git})
	return nil
}

var errMoved = errors.New("it was moved meanwhile; try again")

// leave goes up by one folder.
func (p *place) leave() error {
	if len(p.folders) == 1 {
		return p.refuse("leads outside of the workspace")
	}
	p.last().Close()
	p.folders = p.folders[:len(p.folders)-1]
	return nil
}

func (p *place) last() folder { return p.folders[len(p.folders)-1] }

func (p *place) close() {
	for _, f := range p.folders {
		f.Close()
	}
}

// enterFolder makes the place a folder itself.
func (p *place) enterFolder() error {
	if p.name == "" {
		return nil
	}
	if p.info == nil {
		return p.failed(fs.ErrNotExist)
	}
	if !p.info.IsDir() {
		return p.refuse("is " + kindName(p.info.Mode()) + " and no folder")
	}
	err := p.enter(p.last().Root, p.name, p.info)
	if err == nil {
		p.name = ""
	}
	return err
}

// kind is what the place is; it is there.
func (p *place) kind() string {
	if p.name == "" {
		return kindName(fs.ModeDir)
	}
	return kindName(p.info.Mode())
}

// failed is the error of a look at the place.
func (p *place) failed(err error) error {
	return fmt.Errorf("%s cannot be opened: %w", shown(p.path), reason(err))
}

func (p *place) refuse(why string) error { return &PathError{Path: p.path, Why: why} }

// kindName is how a file of a mode is called.
func kindName(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
}
