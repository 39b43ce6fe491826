package sandbox

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	fetchTimeout = 10 * time.Minute
	maxTarball   = 200 << 20 // bytes; the pinned ones have about 40 MB
	maxBinary    = 400 << 20 // bytes; the pinned ones have about 95 MB
)

// Fetch brings the pinned Deno ([TestedVersion]) into the managed folder below
// home, with whatever registry npm is set up to use, and verifies it against
// the pin. One that is there already is returned as it is. Several processes
// may fetch at once. Npm gets this process's environment but the variables named
// in withhold. Each step is told to progress, if that is set.
func Fetch(ctx context.Context, home string, withhold []string, progress func(string)) (Deno, error) {
	say := func(format string, args ...any) {
		if progress != nil {
			progress(fmt.Sprintf(format, args...))
		}
	}
	if home == "" {
		return Deno{}, errors.New("cannot fetch deno: there is no home folder to put it into")
	}
	target := managedPath(home)
	deno := Deno{Path: target, Version: TestedVersion, Origin: FromManaged}
	if checkExecutable(target) == nil {
		say("deno %s is already at %s", TestedVersion, target)
		return deno, nil
	}
	pinned, err := ownPin()
	if err != nil {
		return Deno{}, err
	}
	bin := filepath.Dir(filepath.Dir(target))
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return Deno{}, fmt.Errorf("make the folder for deno: %w", err)
	}
	work, err := os.MkdirTemp(bin, ".fetch-")
	if err != nil {
		return Deno{}, fmt.Errorf("make a folder to fetch deno into: %w", err)
	}
	defer os.RemoveAll(work)

	say("fetching %s@%s with npm", pinned.name, TestedVersion)
	tarball, err := npmPack(ctx, work, pinned.name+"@"+TestedVersion, withhold)
	if err != nil {
		return Deno{}, err
	}
	say("checking and unpacking it")
	unpacked, err := unpack(tarball, pinned, work)
	if err != nil {
		return Deno{}, fmt.Errorf("fetch deno: %w", err)
	}
	if err := install(unpacked, filepath.Dir(target)); err != nil {
		return Deno{}, fmt.Errorf("install deno: %w", err)
	}
	say("deno %s is at %s", TestedVersion, target)
	return deno, nil
}

// npmPack downloads one package into dir and returns the path of its tarball.
// No script of the package runs.
func npmPack(ctx context.Context, dir, spec string, withhold []string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("npm is not installed, so deno cannot be fetched: install Node.js with npm, or deno %s or later and name it in DENO_PATH: %w", MinVersion, err)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var out boundedBuffer
	cmd := exec.CommandContext(ctx, npm, "pack", spec, "--ignore-scripts", "--silent")
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(withhold, name)
	})
	cmd.Stdout = &out
	cmd.Stderr = &out
	state, err := runGroup(cmd, nil)
	if ctx.Err() != nil {
		return "", fmt.Errorf("`npm pack %s` was stopped: %w", spec, ctx.Err())
	}
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	if err != nil {
		return "", fmt.Errorf("`npm pack %s` failed (is the registry reachable?): %w\n%s", spec, err, tail(cleanText(out.Bytes()), 2000))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("`npm pack %s` left %d tarballs, expected one", spec, len(found))
	}
	return found[0], nil
}

// unpack checks the tarball against its pin and takes nothing but the
// executable out of it. It returns the path of that executable, in a new
// folder below dir.
func unpack(tarball string, pinned pin, dir string) (string, error) {
	file, err := os.Open(tarball)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := verify(file, pinned); err != nil {
		return "", err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	folder := filepath.Join(dir, "unpacked")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(folder, denoName())
	return path, extract(file, "package/"+denoName(), path)
}

func verify(tarball io.Reader, pinned pin) error {
	sum := sha512.New()
	n, err := io.Copy(sum, io.LimitReader(tarball, maxTarball+1))
	if err != nil {
		return err
	}
	if n > maxTarball {
		return fmt.Errorf("the tarball of %s has more than %d bytes", pinned.name, maxTarball)
	}
	got := "sha512-" + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	if got != pinned.integrity {
		return fmt.Errorf("the tarball of %s@%s has the wrong hash: got %s, pinned is %s; nothing was installed, check the registry that npm uses", pinned.name, TestedVersion, got, pinned.integrity)
	}
	return nil
}

// extract writes the regular file that is called name in a gzipped tar to
// target. Everything else in it is skipped, links included.
func extract(tarball io.Reader, name, target string) error {
	unzipped, err := gzip.NewReader(tarball)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	for reader := tar.NewReader(io.LimitReader(unzipped, maxBinary)); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return fmt.Errorf("unpack: the tarball holds no file %q", name)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		if header.Name == name && header.Typeflag == tar.TypeReg {
			return writeExecutable(target, reader)
		}
	}
}

func writeExecutable(target string, content io.Reader) error {
	file, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// install moves the folder of an unpacked executable into place. When another
// process was faster, its result stays.
func install(unpacked, folder string) error {
	_ = os.Remove(folder) // an empty one; what holds something stays
	err := os.Rename(filepath.Dir(unpacked), folder)
	if err == nil || checkExecutable(filepath.Join(folder, filepath.Base(unpacked))) == nil {
		return nil
	}
	return fmt.Errorf("%w; remove %s and try again", err, folder)
}

func tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-n:], "")
}
