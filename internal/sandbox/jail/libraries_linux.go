package jail

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Libraries returns what a program needs to start besides itself: its loader
// and its shared libraries, as mounts that show each where the loader looks for
// it. A static program needs nothing.
func Libraries(program string) ([]Mount, error) {
	l := loader{seen: map[string]bool{}}
	if err := l.add(program); err != nil {
		return nil, fmt.Errorf("find the libraries of %s: %w", program, err)
	}
	slices.SortFunc(l.mounts, func(a, b Mount) int { return strings.Compare(a.Path, b.Path) })
	return l.mounts, nil
}

// loader looks for libraries as the system's loader does, without its cache.
type loader struct {
	dirs   []string // that of the interpreter, and the usual ones
	seen   map[string]bool
	mounts []Mount
}

func (l *loader) add(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if l.dirs == nil {
		if err := l.interpreter(file); err != nil {
			return err
		}
	}
	needed, err := file.ImportedLibraries()
	if err != nil {
		return err
	}
	search := append(runPaths(file, path), l.dirs...)
	for _, name := range needed {
		if l.seen[name] {
			continue
		}
		l.seen[name] = true
		found, err := find(name, search, file.Machine)
		if err != nil {
			return err
		}
		if err := l.mount(found); err != nil {
			return err
		}
		if err := l.add(found); err != nil {
			return err
		}
	}
	return nil
}

// interpreter mounts the loader that the program names.
func (l *loader) interpreter(file *elf.File) error {
	l.dirs = []string{} // only once
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		raw := make([]byte, p.Filesz)
		if _, err := p.ReadAt(raw, 0); err != nil {
			return err
		}
		path := strings.TrimRight(string(raw), "\x00")
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		triplet := map[elf.Machine]string{elf.EM_X86_64: "x86_64-linux-gnu", elf.EM_AARCH64: "aarch64-linux-gnu"}[file.Machine]
		l.dirs = []string{filepath.Dir(real), "/lib/" + triplet, "/usr/lib/" + triplet, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"}
		l.seen[filepath.Base(path)] = true
		return l.mount(path)
	}
	return nil
}

// mount shows the file behind path at path.
func (l *loader) mount(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	l.mounts = append(l.mounts, Mount{Path: path, Source: real, Kind: Program})
	return nil
}

// runPaths are the folders that a file itself names.
func runPaths(file *elf.File, path string) []string {
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		values, _ := file.DynString(tag) // a file without any has none
		for _, value := range values {
			for dir := range strings.SplitSeq(value, ":") {
				origin := filepath.Dir(path)
				dir = strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(dir)
				if filepath.IsAbs(dir) {
					dirs = append(dirs, filepath.Clean(dir))
				}
			}
		}
	}
	return dirs
}

// find returns the first file of that name that is for this machine.
func find(name string, dirs []string, machine elf.Machine) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		file, err := elf.Open(path)
		if err != nil {
			continue
		}
		fits := file.Machine == machine
		file.Close()
		if fits {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is nowhere in %s", name, strings.Join(dirs, ", "))
}
