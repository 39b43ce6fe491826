package sandbox

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

//go:embed bootstrap.ts
var bootstrap []byte

// stage is the private folder of one run or check. It holds the bootstrap, the
// source as <name>.ts, Deno's own folder and a folder for temporary files, and
// lies where no grant reaches.
type stage struct {
	root string
	name string

	modules *modules // remote ones that it may import

	tmpDir      string
	tmpWritable bool // it needs a grant of its own

	unlock func() // held from newStage to Close, see lockFolder
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,199}$`)

// newStage makes the folder outside of the given paths. Close removes it.
func newStage(name string, source []byte, outside ...string) (*stage, error) {
	if !namePattern.MatchString(name) {
		return nil, fmt.Errorf("the name %q cannot be a file name: use letters, digits and _", name)
	}
	root, unlock, err := placeRoot(outside)
	if err != nil {
		return nil, err
	}
	s := &stage{root: root, name: name, tmpDir: filepath.Join(root, "tmp"), unlock: unlock}
	if err := s.fill(source); err != nil {
		s.Close()
		return nil, fmt.Errorf("fill the private folder of the run: %w", err)
	}
	return s, nil
}

// giveTo makes the stage that of another user; nil is us.
func (s *stage) giveTo(user *jail.User) error {
	if user == nil {
		return nil
	}
	for _, root := range []string{s.root, s.tmpDir} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, user.UID, user.GID)
		})
		if err != nil {
			return fmt.Errorf("give the private folder of the run to the owner of the workspace: %w", err)
		}
	}
	return nil
}

// makeRoot makes a folder that only we may enter, and locks it. Where the file
// system has no locks no sweep finds it left.
func makeRoot(base string) (root string, unlock func(), err error) {
	for range 8 {
		root, err = os.MkdirTemp(base, fmt.Sprintf("tendril-run-%d-", os.Getpid()))
		if err != nil {
			return "", nil, err
		}
		unlock, err = lockFolder(root)
		switch {
		case errors.Is(err, errSwept):
			continue
		case err != nil:
			unlock = func() {}
		}
		return root, unlock, nil
	}
	return "", nil, err
}

// errSwept says that a sweep of another process took a folder before it was locked.
var errSwept = errors.New("swept as if it were left")

// sweep removes what a killed process of ours has left behind.
func sweep(base string) {
	folders, _ := filepath.Glob(filepath.Join(base, "tendril-run-*-*")) // the pattern is valid
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || !isOurs(info) {
			continue
		}
		if unlock, err := lockLeft(folder); err == nil {
			s := stage{root: folder, tmpDir: filepath.Join(folder, "tmp"), unlock: unlock}
			if elsewhere, err := os.ReadFile(s.tmpNote()); err == nil && tmpName.MatchString(filepath.Base(string(elsewhere))) {
				s.tmpDir = string(elsewhere)
			}
			_ = s.Close() // the next process tries again
		}
	}
}

func (s *stage) fill(source []byte) error {
	for _, dir := range []string{s.denoDir(), s.tmp(), filepath.Dir(s.bootstrap()), filepath.Dir(s.source()), filepath.Dir(s.lock())} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(s.bootstrap(), bootstrap, 0o400); err != nil {
		return err
	}
	return os.WriteFile(s.source(), source, 0o400)
}

// placeRoot makes the folder in the first of [stageBases] that can be written, that
// no grant reaches, and that Deno's flags can express.
func placeRoot(outside []string) (root string, unlock func(), err error) {
	var problems []error
	for _, base := range stageBases() {
		real, err := realPath(base)
		if err == nil {
			err = expressible(real)
		}
		if err == nil && withinAny(real, outside) {
			err = fmt.Errorf("%s can be reached by the run", real)
		}
		if err == nil {
			root, unlock, err = makeRoot(real)
		}
		if err == nil {
			return root, unlock, nil
		}
		problems = append(problems, err)
	}
	return "", nil, fmt.Errorf("no place for the private folder of a run: %w; set TMPDIR to a folder that can be written", errors.Join(problems...))
}

// stageBases are the folders for temporary files, the system's first. Our own
// folder is none of them: it is closed to runs.
func stageBases() []string {
	bases := []string{os.TempDir()}
	if runtime.GOOS != "windows" {
		bases = append(bases, "/tmp", "/var/tmp")
	}
	if private := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(private) {
		bases = append(bases, private)
	}
	return bases
}

func (s *stage) bootstrap() string { return filepath.Join(s.root, "boot", "bootstrap.ts") }
func (s *stage) source() string    { return filepath.Join(s.root, "src", s.name+".ts") }
func (s *stage) denoDir() string   { return filepath.Join(s.root, "deno") }
func (s *stage) lock() string      { return filepath.Join(s.root, "lock", "deno.lock") }
func (s *stage) homeDir() string   { return filepath.Join(s.root, "home") }
func (s *stage) tmp() string       { return s.tmpDir }
func (s *stage) tmpNote() string   { return filepath.Join(s.root, "tmp-is-at") }

// places are what a run sees of its stage in the operating system layer: its
// folders for temporary files are in memory there, and go with it.
func (s *stage) places(l Limits) []jail.Mount {
	bytes, files := int64(l.WrittenMB)<<20, int64(l.Files)
	return append([]jail.Mount{
		{Path: filepath.Dir(s.bootstrap()), Kind: jail.Read},
		{Path: filepath.Dir(s.source()), Kind: jail.Read},
		{Path: filepath.Dir(s.lock()), Kind: jail.Read},
		{Path: s.denoDir(), Kind: jail.Tmp, Bytes: bytes / 4, Files: files},
		{Path: s.tmp(), Kind: jail.Tmp, Bytes: bytes, Files: files},
	}, s.modules.places(s)...)
}

// Close removes the folder and the one for temporary files.
func (s *stage) Close() error {
	defer s.unlock()
	return errors.Join(removeAll(s.tmpDir), removeAll(s.root))
}

// removeAll removes a folder, also when the run took away its own permissions.
func removeAll(root string) error {
	if os.RemoveAll(root) == nil {
		return nil
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(root)
}

// hide replaces the places of the stage in a text: the source is called
// <name>.ts, as its author knows it.
func (s *stage) hide(text string) string {
	if !strings.Contains(text, filepath.Base(s.root)) && !strings.Contains(text, filepath.Base(s.tmpDir)) {
		return text
	}
	var pairs []string
	for _, place := range []struct{ path, shown string }{
		{s.source(), s.name + ".ts"},
		{filepath.Dir(s.source()) + string(filepath.Separator), "./"},
		{s.bootstrap(), "tendril:bootstrap"},
		{filepath.Join(s.denoDir(), "npm"), "npm"},
		{s.tmp(), "tmp:"},
		{s.root, "tendril:"},
	} {
		pairs = append(pairs, fileURL(place.path), place.shown, place.path, place.shown)
		if escaped := strings.ReplaceAll(place.path, `\`, `\\`); escaped != place.path {
			pairs = append(pairs, escaped, place.shown) // inside of JSON, on Windows
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// fileURL writes an absolute path as Deno does.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if runtime.GOOS == "windows" && !strings.HasPrefix(path, "//") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// isFile reports whether a URL is that of an absolute path, whatever in it is
// escaped: Deno escapes other characters than we do.
func isFile(address, path string) bool {
	got, err := url.Parse(address)
	want, _ := url.Parse(fileURL(path)) // ours
	return err == nil && got.Scheme == "file" && got.Path == want.Path
}
