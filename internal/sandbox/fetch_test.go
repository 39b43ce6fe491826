package sandbox

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func tarball(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	writer := tar.NewWriter(zipped)
	for _, header := range entries {
		body := []byte("content of " + header.Name)
		header.Mode = 0o755
		if header.Typeflag == tar.TypeReg {
			header.Size = int64(len(body))
		}
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := writer.Write(body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(writer.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestUnpack(t *testing.T) {
	name := "package/" + denoName()
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	good := tarball(t, file("package/package.json"), tar.Header{Name: "package/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, file("../../evil"), file(name))
	for _, tt := range []struct {
		name string
		raw  []byte
		pin  string
		err  string
	}{
		{name: "good", raw: good},
		{name: "wrong hash", raw: good, pin: "sha512-AAAA", err: "wrong hash"},
		{name: "a link for the executable", raw: tarball(t, tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "/bin/sh"}), err: "holds no file"},
		{name: "a hard link for it", raw: tarball(t, file("package/a"), tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: "package/a"}), err: "holds no file"},
		{name: "without it", raw: tarball(t, file("package/other")), err: "holds no file"},
		{name: "not zipped", raw: []byte("junk"), err: "unpack"},
		{name: "cut", raw: good[:len(good)/2], err: "unpack"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.tgz")
			if err := os.WriteFile(path, tt.raw, 0o600); err != nil {
				t.Fatal(err)
			}
			sum := sha512.Sum512(tt.raw)
			pinned := pin{"@deno/test", "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
			if tt.pin != "" {
				pinned.integrity = tt.pin
			}
			got, err := unpack(path, pinned, dir)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			text, readErr := os.ReadFile(got)
			if err != nil || readErr != nil || string(text) != "content of "+name || checkExecutable(got) != nil {
				t.Error(err, readErr, string(text))
			}
			if entries, _ := os.ReadDir(filepath.Dir(got)); len(entries) != 1 {
				t.Error("more than the executable was unpacked", entries)
			}
		})
	}
}

func TestInstall_FirstOneWins(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "deno-x")
	for _, text := range []string{"first", "second"} {
		unpacked := filepath.Join(dir, text, denoName())
		if err := errors.Join(os.Mkdir(filepath.Dir(unpacked), 0o755), os.WriteFile(unpacked, []byte(text), 0o755), install(unpacked, target)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(target, denoName())); err != nil || string(text) != "first" {
		t.Error(string(text), err)
	}
}

func TestFetch_IsThere(t *testing.T) {
	home := t.TempDir()
	path := managedPath(home)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	var said []string
	got, err := Fetch(t.Context(), home, nil, func(text string) { said = append(said, text) })
	if err != nil || got.Path != path || got.Version != TestedVersion || len(said) != 1 {
		t.Error(got, err, said)
	}
}

// fakeNpm puts a script called npm first on the PATH.
func fakeNpm(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell script")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestFetch_Fails(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"npm fails", "echo E404 not there; exit 1", "E404 not there"},
		{"nothing came", "exit 0", "left 0 tarballs"},
		{"a wrong package came", "echo junk > deno-x.tgz", "wrong hash"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakeNpm(t, tt.script)
			home := t.TempDir()
			_, err := Fetch(t.Context(), home, nil, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
			if entries, _ := os.ReadDir(filepath.Join(home, "bin")); len(entries) > 0 {
				t.Error("left behind", entries)
			}
		})
	}
	t.Run("no npm", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := Fetch(t.Context(), t.TempDir(), nil, nil); err == nil || !strings.Contains(err.Error(), "npm is not installed") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		fakeNpm(t, "sleep 60")
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Fetch(ctx, t.TempDir(), nil, func(string) { cancel() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPins(t *testing.T) {
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"} {
		goos, goarch, _ := strings.Cut(platform, "/")
		got, err := pinFor(goos, goarch)
		sum, decodeErr := base64.StdEncoding.DecodeString(strings.TrimPrefix(got.integrity, "sha512-"))
		if err != nil || decodeErr != nil || len(sum) != sha512.Size {
			t.Error(platform, got, err, decodeErr)
		}
	}
	if _, err := pinFor("plan9", "amd64"); err == nil || !strings.Contains(err.Error(), "DENO_PATH") {
		t.Error(err)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add([]byte("junk"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "deno")
		_ = extract(bytes.NewReader(raw), "package/deno", path)
	})
}

func TestFetch_WithholdsKeysFromNpm(t *testing.T) {
	fakeNpm(t, "env; exit 1")
	t.Setenv("A_KEY", "canary")
	t.Setenv("NPM_CONFIG_REGISTRY", "kept")
	_, err := Fetch(t.Context(), t.TempDir(), []string{"A_KEY"}, nil)
	if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "NPM_CONFIG_REGISTRY=kept") {
		t.Errorf("got %v", err)
	}
}
