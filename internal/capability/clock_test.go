package capability

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A clock that went back changes what is said about times, and nothing else:
// versions count on, and nothing that was set aside is written over.
func TestClockGoingBack(t *testing.T) {
	opts := testOptions(t)
	now := noon
	opts.Now = func() time.Time { return now }
	r := openWith(t, opts)
	for i, hours := range []int{0, -24 * 365, -1, -1} {
		now = noon.Add(time.Duration(hours) * time.Hour)
		a := register(t, r, definition("x"), strings.Repeat("//\n", i+1))
		if want := []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"}[i]; a.Version != want {
			t.Errorf("version %s, want %s", a.Version, want)
		}
		if err := r.Record(t.Context(), Run{Name: "x", Version: a.Version, Hash: a.Hash, Outcome: "ok", Started: now}); err != nil {
			t.Error(err)
		}
	}
	info, err := openWith(t, opts).Show(t.Context(), "x")
	if err != nil || info.Version != "1.3.0" || len(info.Versions) != 4 || !slices.IsSortedFunc(info.Versions, func(a, b VersionInfo) int { return strings.Compare(a.Version, b.Version) }) {
		t.Errorf("show: %+v, %v", info, err)
	}
	if info.Usage.Last != noon.Format(time.RFC3339) || !info.Updated.Equal(now) {
		t.Errorf("last used %s, updated %s", info.Usage.Last, info.Updated)
	}
	for i := range 6 { // three at the same second
		now = noon.Add(time.Duration(min(i, 3)) * -time.Hour)
		writeTool(t, opts, "index.json", strings.Repeat("{", i+1))
		resolve(t, openWith(t, opts), "x")
	}
	aside, _ := filepath.Glob(filepath.Join(opts.Workspace, "tools/index.json.unreadable-*"))
	var texts []string
	for _, path := range aside {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		texts = append(texts, string(data))
	}
	slices.Sort(texts)
	if want := []string{"{", "{{", "{{{", "{{{{", "{{{{{", "{{{{{{"}; !slices.Equal(texts, want) {
		t.Errorf("set aside %q: %q", aside, texts)
	}
}
