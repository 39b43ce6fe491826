package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Deno is an executable that may run capabilities.
type Deno struct {
	Path    string
	Version string // such as "2.9.6"
	Origin  Origin
}

// Origin says where a Deno was found.
type Origin string

// The places where [Find] looks, in this order.
const (
	FromEnvironment Origin = "DENO_PATH"
	FromConfig      Origin = "configured path"
	FromBeside      Origin = "next to tendril"
	FromManaged     Origin = "managed folder"
	FromPath        Origin = "PATH"
)

// FindOptions say where to look. All fields are optional.
type FindOptions struct {
	Configured string              // path from the settings; "" and "deno" count as not set
	Home       string              // our folder, ~/.tendril
	Executable string              // our own executable
	Getenv     func(string) string // default os.Getenv
}

// candidate is one place to look. An explicit one was named by a person: when
// it cannot be used, that is an error and no reason to look further.
type candidate struct {
	origin   Origin
	path     string
	explicit bool
	version  string // known without running it
}

// Find returns the first usable Deno. The error wraps [ErrNoDeno].
func Find(opts FindOptions) (Deno, error) {
	var tried []string
	for _, c := range candidates(opts) {
		deno, err := c.try()
		switch {
		case err == nil:
			return deno, nil
		case c.explicit:
			return Deno{}, fmt.Errorf("%w: %s names %q: %w; mend it, or unset it and run `tendril setup`", ErrNoDeno, c.origin, c.path, err)
		case errors.Is(err, fs.ErrNotExist):
			tried = append(tried, fmt.Sprintf("%s (%s)", c.path, c.origin))
		default:
			tried = append(tried, fmt.Sprintf("%s (%s: %v)", c.path, c.origin, err))
		}
	}
	if len(tried) == 0 {
		tried = []string{"PATH"}
	}
	return Deno{}, fmt.Errorf("%w: looked at %s; `tendril setup` fetches version %s", ErrNoDeno, strings.Join(tried, ", "), TestedVersion)
}

func candidates(opts FindOptions) []candidate {
	getenv := opts.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if path := getenv("DENO_PATH"); path != "" {
		return []candidate{{origin: FromEnvironment, path: path, explicit: true}}
	}
	if path := opts.Configured; path != "" && path != "deno" {
		return []candidate{{origin: FromConfig, path: path, explicit: true}}
	}
	var list []candidate
	if opts.Executable != "" {
		list = append(list, candidate{origin: FromBeside, path: filepath.Join(filepath.Dir(opts.Executable), denoName())})
	}
	if opts.Home != "" {
		list = append(list, candidate{origin: FromManaged, path: managedPath(opts.Home), version: TestedVersion})
	}
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		path := filepath.Join(dir, denoName())
		if _, err := os.Stat(path); err == nil && filepath.IsAbs(dir) {
			list = append(list, candidate{origin: FromPath, path: path})
		}
	}
	return list
}

func (c candidate) try() (Deno, error) {
	path, err := filepath.Abs(c.path)
	if err != nil {
		return Deno{}, err
	}
	if err := checkExecutable(path); err != nil {
		return Deno{}, err
	}
	deno := Deno{Path: path, Version: c.version, Origin: c.origin}
	if deno.Version == "" {
		if deno.Version, err = askVersion(path); err != nil {
			return Deno{}, err
		}
	}
	if !fits(deno.Version) {
		return Deno{}, fmt.Errorf("it is version %s, needed is %s or later", deno.Version, MinVersion)
	}
	return deno, nil
}

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			return pathErr.Err // the caller names the path
		}
		return err
	}
	if !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0 {
		return errors.New("it is not an executable file")
	}
	return nil
}

// askVersion runs `deno --version`, which takes about 5 ms.
func askVersion(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var out boundedBuffer
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = append(systemEnv(), "DENO_NO_UPDATE_CHECK=1", "NO_COLOR=1")
	cmd.Stdout = &out
	if _, err := runGroup(cmd, nil); err != nil {
		return "", fmt.Errorf("`deno --version` failed: %w", err)
	}
	first, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	version, err := parseVersion(string(first))
	if err != nil {
		return "", err
	}
	return formatVersion(version), nil
}

func denoName() string {
	if runtime.GOOS == "windows" {
		return "deno.exe"
	}
	return "deno"
}

// managedPath is where [Fetch] puts the pinned Deno.
func managedPath(home string) string {
	return filepath.Join(home, "bin", "deno-"+TestedVersion, denoName())
}
