package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

func TestNamedFiles(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	for _, path := range []string{"chart.png", "out/data.csv", ".env", "tools/x.ts", "a b.txt"} {
		full := filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("1234"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "f"), filepath.Join(folder, "link")); err != nil {
		t.Skip("no links here")
	}
	for _, tt := range []struct{ value, text, want string }{
		{`"chart.png"`, "", "chart.png"},
		{`{"b":["out/data.csv",{"c":"./chart.png"}],"a":"x","chart.png":1}`, "", "out/data.csv chart.png"},
		{`"` + filepath.ToSlash(filepath.Join(folder, "a b.txt")) + `"`, "", "a b.txt"},
		{"", "written:\nout/data.csv\nnothing.txt", "out/data.csv"},
		{`[".env","link","../f","` + filepath.ToSlash(filepath.Join(outside, "f")) + `","/etc/passwd","out",".","","\u0000"]`, "", ""},
		{`"wrote chart.png"`, "", ""},
	} {
		result := sandbox.Result{Outcome: sandbox.OK, Text: tt.text}
		if tt.value != "" {
			result.Value = json.RawMessage(tt.value)
		}
		var got []string
		for _, f := range namedFiles(folder, &result) {
			got = append(got, f.Path)
			if f.Bytes != 4 || f.MediaType == "" || strings.HasSuffix(f.Path, ".png") && f.MediaType != "image/png" {
				t.Errorf("%+v", f)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s%s: got %v, want %s", tt.value, tt.text, got, tt.want)
		}
	}
}
