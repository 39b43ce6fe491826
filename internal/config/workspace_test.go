package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestLocate(t *testing.T) {
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for _, c := range []struct {
		env  func(string) string
		want Dirs
	}{
		{env("HOME=" + home), Dirs{home, filepath.Join(home, ".tendril")}},
		{env("USERPROFILE=" + home), Dirs{home, filepath.Join(home, ".tendril")}},
		{env("HOME="+home, "TENDRIL_HOME=rel/x/"), Dirs{home, filepath.Join(cwd, "rel", "x")}},
		{env("HOME="+home, "TENDRIL_HOME=~/t"), Dirs{home, filepath.Join(home, "t")}},
		{env("TENDRIL_HOME=" + home), Dirs{"", home}},
		{env("HOME=rel", "TENDRIL_HOME="+home), Dirs{"", home}},
	} {
		if got, err := Locate(c.env); err != nil || got != c.want {
			t.Errorf("got %v, %v, want %v", got, err, c.want)
		}
	}
}

func TestLocate_NoHome(t *testing.T) {
	for _, e := range []func(string) string{env(), env("HOME="), env("HOME=relative")} {
		dirs, err := Locate(e)
		if !errors.Is(err, ErrConfig) || dirs != (Dirs{}) || !strings.Contains(err.Error(), "TENDRIL_HOME") {
			t.Errorf("got %v, %v", dirs, err)
		}
	}
}

func TestPrepare(t *testing.T) {
	home := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := Prepare(home); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if info, err := os.Stat(home); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestPrepare_Unwritable(t *testing.T) {
	places := []string{filepath.Join(Path(homeWith(t, "{}")), "home"), Path(homeWith(t, "{}"))}
	if runtime.GOOS == "linux" {
		places = append(places, "/proc/tendril", "/proc/sys") // read-only for everybody
	}
	for _, home := range places {
		if err := Prepare(home); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "nothing is kept") {
			t.Errorf("%s: %v", home, err)
		}
	}
}

// tree is a user's folders: home, home/.tendril, and home/link, which leads to
// home.
func tree(t *testing.T) Dirs {
	t.Helper()
	user, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	user = filepath.Join(user, "home", "u")
	dirs := Dirs{User: user, Tendril: filepath.Join(user, ".tendril")}
	if err := os.MkdirAll(dirs.Tendril, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": user, "dangling": filepath.Join(user, "none"), "loop": filepath.Join(user, "loop"), "inside": dirs.Tendril} {
		if err := os.Symlink(target, filepath.Join(user, name)); err != nil {
			t.Skip(err)
		}
	}
	return dirs
}

func TestResolveWorkspace(t *testing.T) {
	dirs := tree(t)
	t.Chdir(dirs.User)
	in := func(elements ...string) string { return filepath.Join(append([]string{dirs.User}, elements...)...) }
	for _, c := range []struct{ flag, setting, want string }{
		{"", "~/tendril-workspace", in("tendril-workspace")},
		{"", in("w"), in("w")},
		{in("flag"), in("w"), in("flag")},
		{"rel/x", "", in("rel", "x")},
		{"./rel/", "", in("rel")},
		{"~/a/b", "", in("a", "b")},
		{in("link", "w"), "", in("w")},
		{in("100% 😍 #1?"), "", in("100% 😍 #1?")},
		{in(`it's "q"`), "", in(`it's "q"`)},
		{"-dash", "", in("-dash")},
		{in("👩\u200d💻"), "", in("👩\u200d💻")},
		{in(" lead"), "", in(" lead")},
		{in(".tendril-not"), "", in(".tendril-not")},
		{in("..a"), "", in("..a")},
	} {
		got, err := ResolveWorkspace(c.flag, &Config{Workspace: c.setting}, dirs)
		if err != nil || got != c.want {
			t.Errorf("%q %q: got %q, %v, want %q", c.flag, c.setting, got, err, c.want)
		}
	}
	if entries, err := os.ReadDir(dirs.User); err != nil || len(entries) != 5 {
		t.Errorf("something was created: %v, %v", entries, err)
	}
}

func TestResolveWorkspace_Refuses(t *testing.T) {
	dirs := tree(t)
	in := func(elements ...string) string { return filepath.Join(append([]string{dirs.User}, elements...)...) }
	for path, want := range map[string]string{
		" ":                       "is empty",
		"relative":                "is relative",
		"~other/w":                "is relative",
		"~":                       "is your home folder",
		"~/":                      "is your home folder",
		dirs.User:                 "is your home folder",
		in("link"):                "is your home folder",
		filepath.Dir(dirs.User):   "contains your home folder",
		dirs.Tendril:              "where settings and admissions are kept",
		in(".tendril", "w"):       "lies in",
		in("inside", "deep", "w"): "lies in",
		in("link", ".tendril"):    "where settings and admissions are kept",
		dirs.User + "/a/../b":     `contains ".."`,
		"~/../x":                  `contains ".."`,
		in("a,b"):                 "contains a comma",
		in("a\nb"):                "cannot be shown",
		in("a\x00b"):              "cannot be shown",
		in("a\xffb"):              "cannot be shown",
		in("a\u202eb"):            "cannot be shown",
		in("a\u2028b"):            "cannot be shown",
		in("dangling"):            "leads nowhere",
		in("dangling", "w"):       "leads nowhere",
		in("loop"):                "cannot be resolved",
	} {
		got, err := ResolveWorkspace("", &Config{Workspace: path}, dirs)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want %s", path, got, err, want)
		}
	}
}

func TestResolveWorkspace_SystemFolders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other folders")
	}
	for _, path := range []string{"/", "/etc", "/etc/x", "/usr", "/usr/local/share/x", "/bin", "/home", "/tmp", "/tmp/", "/var", "/root", "/dev/shm", "//"} {
		for _, dirs := range []Dirs{tree(t), {}, {User: "/", Tendril: "/.tendril"}} {
			if got, err := ResolveWorkspace(path, &Config{}, dirs); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "is a system folder") {
				t.Errorf("%s with %v: got %q, %v", path, dirs, got, err)
			}
		}
	}
}

func TestResolveWorkspace_TendrilHomeElsewhere(t *testing.T) {
	dirs := tree(t)
	data := filepath.Join(dirs.User, "data")
	dirs.Tendril = filepath.Join(data, "tendril") // not there yet
	if _, err := ResolveWorkspace(data, &Config{}, dirs); err == nil || !strings.Contains(err.Error(), "contains "+dirs.Tendril) {
		t.Errorf("got %v", err)
	}
	if _, err := ResolveWorkspace(filepath.Join(data, "w"), &Config{}, dirs); err != nil {
		t.Error(err)
	}
}

func TestResolveWorkspace_NoHome(t *testing.T) {
	cfg, _ := load(t, "")
	if _, err := ResolveWorkspace("", cfg, Dirs{}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "HOME is not set") {
		t.Errorf("got %v", err)
	}
}
