package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

func TestKeepResult(t *testing.T) {
	folder := t.TempDir()
	now := time.Date(2026, 4, 11, 12, 0, 0, 0, time.UTC)
	var kept []string
	for i := range keptResults + 5 {
		name, err := keepResult(folder, "cap", fmt.Sprint(i), now.Add(time.Duration(i/2)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(data) != fmt.Sprint(i) || slices.Contains(kept, name) {
			t.Errorf("%s: %s, %v", name, data, err)
		}
		kept = append(kept, name)
	}
	left, _ := filepath.Glob(filepath.Join(folder, ResultsFolder, "*.txt"))
	if len(left) != keptResults {
		t.Errorf("%d are left", len(left))
	}
	if _, err := os.Stat(filepath.Join(folder, kept[0])); err == nil {
		t.Error("the oldest is still there")
	}
	if data, _ := os.ReadFile(filepath.Join(folder, ResultsFolder, ".gitignore")); string(data) != "*\n" {
		t.Errorf("git would show them: %q", data)
	}
}

// What somebody planted in the place of the folder leads nowhere.
// In the folder of another user, root leaves nothing that this one cannot read.
func TestKeepResult_Owner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	folder := t.TempDir()
	if err := os.Chown(folder, 1234, 1234); err != nil {
		t.Skip(err)
	}
	if _, _, other := sandbox.Owner(folder); !other {
		t.Skip("no other user here")
	}
	name, err := keepResult(folder, "cap", "text", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ResultsFolder, ResultsFolder + "/.gitignore", name} {
		info, err := os.Lstat(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if owner := reflect.Indirect(reflect.ValueOf(info.Sys())).FieldByName("Uid"); owner.IsValid() && owner.Uint() != 1234 {
			t.Errorf("%s belongs to %d", name, owner.Uint())
		}
	}
}

func TestKeepResult_Planted(t *testing.T) {
	outside := t.TempDir()
	for name, plant := range map[string]func(at string) error{
		"link out":  func(at string) error { return os.Symlink(outside, at) },
		"link in":   func(at string) error { return os.Symlink("tools", at) },
		"a file":    func(at string) error { return os.WriteFile(at, nil, 0o600) },
		"read-only": func(at string) error { return os.WriteFile(at, nil, 0o400) },
	} {
		folder := t.TempDir()
		if err := os.Mkdir(filepath.Join(folder, "tools"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := plant(filepath.Join(folder, ResultsFolder)); err != nil {
			t.Fatal(err)
		}
		if at, err := keepResult(folder, "cap", "text", time.Now()); err == nil {
			t.Errorf("%s: kept at %s", name, at)
		}
		for _, dir := range []string{outside, filepath.Join(folder, "tools")} {
			if entries, _ := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("%s: %s was written to", name, dir)
			}
		}
	}
}

// writeFiles makes files of four bytes, or of a PNG's head.
func writeFiles(t *testing.T, folder string, modified time.Time, paths ...string) {
	t.Helper()
	for _, path := range paths {
		full, text := filepath.Join(folder, path), "1234"
		if strings.HasPrefix(filepath.Base(path), "chart") {
			text = "\x89PNG\r\n\x1a\n"
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(full, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNamedFiles(t *testing.T) {
	folder, outside, started := t.TempDir(), t.TempDir(), time.Now()
	writeFiles(t, folder, started, "chart.png", "out/data.csv", "a b.txt", "fake.png", "out/UPPER.CSV", "x.unknown",
		".env", ".ENV.local", "sub/.env.production", "sub/.git/config", "sub/.npmrc", "package.json")
	writeFiles(t, folder, started.Add(-time.Second), "old.csv", "chart-old", "fake-old.png")
	writeFiles(t, outside, started, "f")
	for name, target := range map[string]string{
		"link": filepath.Join(outside, "f"), "harmless": filepath.Join("sub", ".env.production"), "folder": filepath.Join("sub", ".git"), "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Skip("no links here")
		}
	}
	quoted := func(parts ...string) string { return `"` + filepath.ToSlash(filepath.Join(parts...)) + `"` }
	for _, tt := range []struct{ value, text, want string }{
		{`"chart.png"`, "", "chart.png image/png"},
		{`{"b":["out/data.csv",{"c":"./chart.png"}],"a":"x","chart.png":1}`, "", "out/data.csv text/csv, chart.png image/png"},
		{quoted(folder, "a b.txt"), "", "a b.txt text/plain"},
		{"", "written:\nout/data.csv\nnothing.txt", "out/data.csv text/csv"},
		{`["chart.png","chart.png","out/../chart.png"]`, "", "chart.png image/png"},
		{`["fake.png","out/UPPER.CSV","x.unknown"]`, "", "fake.png application/octet-stream, out/UPPER.CSV text/csv, x.unknown application/octet-stream"},
		{`["old.csv","chart-old","fake-old.png"]`, "", "chart-old image/png"},
		{`[".env",".ENV.local","sub/.env.production","sub/.git/config","sub/.npmrc","package.json"]`, "", ""},
		{`["link","harmless","folder/config","loop"]`, "", ""},
		{`["../f",` + quoted(outside, "f") + `,"/etc/passwd","out",".","","\u0000"]`, "", ""},
		{`"wrote chart.png"`, "", ""},
	} {
		result := sandbox.Result{Outcome: sandbox.OK, Text: tt.text}
		if tt.value != "" {
			result.Value = json.RawMessage(tt.value)
		}
		var got []string
		for _, f := range namedFiles(folder, &result, started) {
			got = append(got, f.Path+" "+f.MediaType)
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s%s: got %v, want %s", tt.value, tt.text, got, tt.want)
		}
		result.Outcome = sandbox.Failed
		if files := namedFiles(folder, &result, started); len(files) > 0 {
			t.Errorf("%s%s: a failed run names %v", tt.value, tt.text, files)
		}
	}
}
