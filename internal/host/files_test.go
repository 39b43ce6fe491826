package host

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/workspace"
)

// TestFiles reads, saves and refuses over the wire; the rules are tested with
// the workspace.
func TestFiles(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "ws")
	w, _, err := workspace.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	var revealed []string
	r := serve(t, t.TempDir(), func(o *Options) {
		o.Files = func(_ context.Context, use func(*workspace.Workspace) error) error { return use(w) }
		o.Reveal = func(folder string) error { revealed = append(revealed, folder); return nil }
	})
	r.signIn()
	secret := filepath.Join(filepath.Dir(root), "secret")
	for _, folder := range []string{"tools", ".git"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{secret: "canary", filepath.Join(root, "a.md"): "\ufeffone\r\ntwo", filepath.Join(root, "b.bin"): "\x00", filepath.Join(root, "big"): strings.Repeat("x", 1<<20+1)} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(root, "link")); err != nil {
		t.Skip(err)
	}
	get := func(path string, v any) int {
		resp, text := r.send("GET", path, "", nil)
		if strings.Contains(text, "canary") {
			t.Errorf("%s: %s", path, text)
		}
		if v != nil {
			if err := json.Unmarshal([]byte(text), v); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		return resp.StatusCode
	}
	put := func(path, text, version string) (int, Saved, string) {
		body, err := json.Marshal(map[string]string{"path": path, "text": text, "version": version})
		if err != nil {
			t.Fatal(err)
		}
		resp, answer := r.send("PUT", "/api/files/content", string(body), nil)
		var s Saved
		_ = json.Unmarshal([]byte(answer), &s)
		return resp.StatusCode, s, answer
	}
	var folder Folder
	if status := get("/api/files", &folder); status != 200 || len(folder.Entries) != 6 {
		t.Errorf("%d %+v", status, folder)
	}
	var f File
	if status := get("/api/files/content?path=a.md", &f); status != 200 || f.Text == nil || *f.Text != "\ufeffone\r\ntwo" {
		t.Fatalf("%d %+v", status, f)
	}
	status, saved, answer := put("a.md", *f.Text+"!", f.Version)
	if status != 200 || saved.Version == f.Version {
		t.Errorf("%d %s", status, answer)
	}
	if status, _, answer := put("a.md", "mine", f.Version); status != http.StatusConflict || !strings.Contains(answer, `"changed"`) {
		t.Errorf("%d %s", status, answer)
	}
	if data, err := os.ReadFile(filepath.Join(root, "a.md")); err != nil || string(data) != "\ufeffone\r\ntwo!" {
		t.Errorf("%q %v", data, err)
	}
	for path, told := range map[string]func(File) bool{"b.bin": func(f File) bool { return f.Binary }, "big": func(f File) bool { return f.TooLarge }} {
		var f File
		if status := get("/api/files/content?path="+path, &f); status != 200 || !told(f) || f.Text != nil {
			t.Errorf("%s: %d %+v", path, status, f)
		}
		if status, _, answer := put(path, "", ""); status < 400 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	for _, path := range []string{"../secret", "link", secret, "..\\secret", "a.md/../../secret", "%2e%2e/secret", "nul", "x\x00y"} {
		if status := get("/api/files/content?path="+url.QueryEscape(path), nil); status < 400 || status >= 500 {
			t.Errorf("%q is read: %d", path, status)
		}
		if status, _, answer := put(path, "mine", ""); path != "%2e%2e/secret" && (status < 400 || status >= 500) {
			t.Errorf("%q is written: %d %s", path, status, answer)
		}
	}
	for path, code := range map[string]string{"tools/index.json": "read_only", "tools/x.ts": "gate", ".git/config": "read_only"} {
		if status, _, answer := put(path, "mine", ""); status != http.StatusForbidden || !strings.Contains(answer, `"`+code+`"`) {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if resp, text := r.send("POST", "/api/files/reveal", `{"path":"a.md"}`, nil); resp.StatusCode != 204 || len(revealed) != 1 || filepath.Base(revealed[0]) != "ws" {
		t.Errorf("%d %s %v", resp.StatusCode, text, revealed)
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "canary" {
		t.Errorf("%q %v", data, err)
	}
}
