package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// fakeDeno writes a program that answers --version.
func fakeDeno(t *testing.T, dir, version string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell script")
	}
	path := filepath.Join(dir, "deno")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho 'deno "+version+" (stable)'\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	good, old := fakeDeno(t, t.TempDir(), "2.9.6"), fakeDeno(t, t.TempDir(), "2.1.0")
	newer, junk := fakeDeno(t, t.TempDir(), "3.10.0"), fakeDeno(t, t.TempDir(), "is broken")
	home, beside := t.TempDir(), t.TempDir()
	managed := filepath.Dir(managedPath(home))
	fakeDeno(t, managed, "never asked")
	fakeDeno(t, beside, "2.10.1")
	plain := filepath.Join(t.TempDir(), "deno")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	path := func(files ...string) string {
		var dirs []string
		for _, file := range files {
			dirs = append(dirs, filepath.Dir(file))
		}
		return strings.Join(dirs, string(os.PathListSeparator))
	}
	for _, tt := range []struct {
		name    string
		opts    FindOptions
		env     map[string]string
		origin  Origin
		version string
		err     string
	}{
		{name: "environment wins", opts: FindOptions{Configured: old, Home: home}, env: map[string]string{"DENO_PATH": good}, origin: FromEnvironment, version: "2.9.6"},
		{name: "environment points nowhere", opts: FindOptions{Configured: good, Home: home}, env: map[string]string{"DENO_PATH": "/none/deno", "PATH": path(good)}, err: "DENO_PATH names"},
		{name: "environment is a folder", env: map[string]string{"DENO_PATH": home}, err: "not an executable"},
		{name: "environment is no program", env: map[string]string{"DENO_PATH": plain}, err: "not an executable"},
		{name: "environment is too old", env: map[string]string{"DENO_PATH": old}, err: "version 2.1.0, needed is 2.9.6"},
		{name: "environment is no deno", env: map[string]string{"DENO_PATH": junk}, err: "no version"},
		{name: "configured", opts: FindOptions{Configured: newer, Home: home}, origin: FromConfig, version: "3.10.0"},
		{name: "configured points nowhere", opts: FindOptions{Configured: "/none/deno", Home: home}, err: "configured path names"},
		{name: "the literal deno is not set", opts: FindOptions{Configured: "deno", Home: home}, origin: FromManaged, version: TestedVersion},
		{name: "beside", opts: FindOptions{Executable: filepath.Join(beside, "tendril"), Home: home}, origin: FromBeside, version: "2.10.1"},
		{name: "managed before PATH", opts: FindOptions{Home: home}, env: map[string]string{"PATH": path(newer)}, origin: FromManaged, version: TestedVersion},
		{name: "PATH skips what does not fit", opts: FindOptions{Home: t.TempDir()}, env: map[string]string{"PATH": path(old, junk, newer)}, origin: FromPath, version: "3.10.0"},
		{name: "none", opts: FindOptions{Home: t.TempDir()}, env: map[string]string{"PATH": path(old)}, err: "tendril setup"},
		{name: "nowhere to look", err: "tendril setup"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Getenv = func(key string) string { return tt.env[key] }
			got, err := Find(tt.opts)
			if tt.err != "" {
				if !errors.Is(err, ErrNoDeno) || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || got.Origin != tt.origin || got.Version != tt.version || !filepath.IsAbs(got.Path) {
				t.Errorf("got %+v %v", got, err)
			}
		})
	}
}

func TestFind_Real(t *testing.T) {
	deno := testkit.Deno(t)
	got, err := Find(FindOptions{Configured: deno, Getenv: func(string) string { return "" }})
	if err != nil || !fits(got.Version) {
		t.Error(got, err)
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, seed := range []string{"deno 2.9.6 (stable)", "2.9.6", "deno 2.9", "deno 99999999999.1.1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		version, err := parseVersion(text)
		if err != nil {
			return
		}
		again, err := parseVersion(formatVersion(version))
		if err != nil || again != version {
			t.Errorf("%q: %v, then %v %v", text, version, again, err)
		}
	})
}
