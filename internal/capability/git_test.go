package capability

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// clone is a colleague's copy of a repository, with their own machine's database.
type clone struct {
	t    *testing.T
	name string
	opts Options
}

func (c *clone) git(args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), "git", args...)
	cmd.Dir = c.opts.Workspace
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME="+c.name, "GIT_AUTHOR_EMAIL="+c.name+"@example.com", "GIT_COMMITTER_NAME="+c.name, "GIT_COMMITTER_EMAIL="+c.name+"@example.com")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *clone) must(args ...string) string {
	c.t.Helper()
	out, err := c.git(args...)
	if err != nil {
		c.t.Fatalf("%s: git %s: %v\n%s", c.name, strings.Join(args, " "), err, out)
	}
	return out
}

func (c *clone) commit(message string) {
	c.t.Helper()
	c.must("add", "-A")
	c.must("commit", "-q", "-m", message)
}

// team is two clones of one repository, in which a capability x is registered.
func team(t *testing.T) (ada, bob *clone) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	origin := filepath.Join(t.TempDir(), "origin.git")
	ada, bob = &clone{t: t, name: "ada", opts: testOptions(t)}, &clone{t: t, name: "bob", opts: testOptions(t)}
	ada.must("init", "-q", "--bare", "-b", "main", origin)
	ada.must("clone", "-q", origin, ".")
	ada.must("checkout", "-q", "-B", "main")
	register(t, openWith(t, ada.opts), definition("x"), "console.log(1)\n")
	ada.commit("Add x")
	ada.must("push", "-q", "origin", "main")
	bob.must("-c", "core.autocrlf=true", "clone", "-q", "-c", "core.autocrlf=true", origin, ".")
	return ada, bob
}

func TestGit_AClone(t *testing.T) {
	ada, bob := team(t)
	if out := ada.must("ls-files", "tools"); strings.Contains(out, ".lock") || !strings.Contains(out, "tools/.gitattributes") || strings.Count(out, "\n") != 6 {
		t.Errorf("committed: %s", out)
	}
	r := openWith(t, bob.opts)
	if v := resolve(t, r, "x"); len(v.Notes) > 0 { // core.autocrlf has changed nothing
		t.Errorf("notes %q", v.Notes)
	}
	if found, err := r.Examine(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("%s, %v", encode(found), err)
	}
	if out := bob.must("status", "--porcelain"); out != "" {
		t.Errorf("running it changes the working tree: %s", out)
	}
	register(t, r, definition("x"), "console.log(2)\n")
	out := bob.must("diff", "--stat=200", "--", "tools/index.json", "tools/x.ts")
	if !strings.Contains(out, "2 files changed, 3 insertions(+), 3 deletions(-)") {
		t.Errorf("not a small diff: %s\n%s", out, bob.must("diff"))
	}
}

// TestGit_BothAdd: capabilities that both have added in the same place are taken
// together, by the doctor or by the person.
func TestGit_BothAdd(t *testing.T) {
	ada, bob := team(t)
	register(t, openWith(t, ada.opts), definition("y"), "console.log('y')\n")
	ada.commit("Add y")
	ada.must("push", "-q", "origin", "main")
	register(t, openWith(t, bob.opts), definition("z"), "console.log('z')\n")
	bob.commit("Add z")
	if out, err := bob.git("pull", "-q", "--no-rebase", "origin", "main"); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	r := openWith(t, bob.opts)
	resolve(t, r, "x")
	mended, left, err := r.Fix(t.Context())
	if err != nil || len(mended) != 1 {
		t.Fatalf("mended %s, left %s, %v", encode(mended), encode(left), err)
	}
	for _, f := range left {
		if f.Severity != SeverityNote { // y has not passed the gate here
			t.Errorf("left: %s", encode(f))
		}
	}
	for _, name := range []string{"x", "y", "z"} {
		resolve(t, r, name)
	}
	bob.commit("Merge")
	bob.must("push", "-q", "origin", "main")
	ada.must("pull", "-q", "--ff-only", "origin", "main")
	if l := list(t, openWith(t, ada.opts), ""); l.Total != 3 {
		t.Errorf("ada has %v", names(l))
	}
}

// TestGit_BothChange: two versions of one capability are a conflict with both
// sides; a person takes one, the other is kept, and both machines gate what they
// have not seen.
func TestGit_BothChange(t *testing.T) {
	ada, bob := team(t)
	register(t, openWith(t, ada.opts), definition("x"), "console.log('ada')\n")
	ada.commit("Ada's x")
	ada.must("push", "-q", "origin", "main")
	register(t, openWith(t, bob.opts), definition("x"), "console.log('bob')\n")
	bob.commit("Bob's x")
	if out, err := bob.git("pull", "-q", "--no-rebase", "origin", "main"); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	gated := map[string]int{}
	bob.opts.Checker = counting(gated)
	r := openWith(t, bob.opts)
	var conflict *ConflictError
	if _, err := r.Resolve(t.Context(), "x", nil); !errors.As(err, &conflict) || strings.Count(err.Error(), "1.1.0 (") != 2 {
		t.Errorf("%v", err)
	}
	if _, err := r.Register(t.Context(), definition("y"), "1", Provenance{}, nil); !errors.As(err, &conflict) {
		t.Errorf("registered over a conflict: %v", err)
	}
	var undecided *UndecidedError
	if _, err := r.Settle(t.Context(), nil, ""); !errors.As(err, &undecided) || len(undecided.Names) != 1 {
		t.Errorf("%v", err)
	}
	if _, err := r.Settle(t.Context(), map[string]Choice{"y": Ours}, ""); err == nil {
		t.Error("y is not in conflict")
	}
	settled, err := r.Settle(t.Context(), map[string]Choice{"x": Theirs}, "")
	if err != nil || settled["x"] != "1.1.0" {
		t.Fatalf("%v, %v", settled, err)
	}
	if v := resolve(t, r, "x"); string(v.Source) != "console.log('ada')\n" || len(v.Notes) > 0 || gated[string(v.Source)] != 1 {
		t.Errorf("%q runs, notes %q, gated %v", v.Source, v.Notes, gated)
	}
	if got := states(t, r, "x"); strings.Count(got, "1.1.0") != 2 || strings.Count(got, "active") != 1 {
		t.Error(got)
	}
	found, err := r.Examine(t.Context())
	if err != nil || len(found) != 1 || found[0].Severity != SeverityNote {
		t.Errorf("%s, %v", encode(found), err)
	}
	if a := register(t, r, definition("x"), "console.log('both')\n"); a.Version != "1.2.0" {
		t.Errorf("the next one is %s", a.Version)
	}
	bob.commit("Merge")
	bob.must("push", "-q", "origin", "main")
	ada.must("pull", "-q", "--ff-only", "origin", "main")
	gated = map[string]int{}
	ada.opts.Checker = counting(gated)
	if v := resolve(t, openWith(t, ada.opts), "x"); string(v.Source) != "console.log('both')\n" || gated[string(v.Source)] != 1 {
		t.Errorf("%q runs, gated %v", v.Source, gated)
	}
}

// TestGit_DeletedAndChanged: one has deleted what the other has changed.
func TestGit_DeletedAndChanged(t *testing.T) {
	for _, choice := range []Choice{Ours, Theirs} {
		ada, bob := team(t)
		if err := openWith(t, ada.opts).Delete(t.Context(), "x", Provenance{By: ByHuman}); err != nil {
			t.Fatal(err)
		}
		ada.commit("Delete x")
		ada.must("push", "-q", "origin", "main")
		register(t, openWith(t, bob.opts), definition("x"), "console.log('bob')\n")
		bob.commit("Bob's x")
		if out, err := bob.git("pull", "-q", "--no-rebase", "origin", "main"); err == nil {
			t.Fatalf("no conflict: %s", out)
		}
		r := openWith(t, bob.opts)
		var undecided *UndecidedError
		if _, err := r.Settle(t.Context(), nil, ""); !errors.As(err, &undecided) {
			t.Errorf("%v", err)
		}
		if _, err := r.Settle(t.Context(), nil, choice); err != nil {
			t.Fatal(err)
		}
		_, err := r.Resolve(t.Context(), "x", nil)
		if (err == nil) != (choice == Ours) {
			t.Errorf("%s: %v", choice, err)
		}
		if !keptSomewhere(r, "console.log('bob')\n") {
			t.Errorf("%s: bob's version is lost", choice)
		}
		if choice == Theirs {
			if _, err := r.Restore(t.Context(), "x", Provenance{}, nil); err != nil || string(resolve(t, r, "x").Source) != "console.log('bob')\n" {
				t.Errorf("restored: %v", err)
			}
		}
	}
}

// TestGit_ABranchIsReviewed: what a branch brings runs only after the gate, and a
// text that hides behind the reviewed one is found.
func TestGit_ABranchIsReviewed(t *testing.T) {
	ada, bob := team(t)
	ada.must("checkout", "-q", "-b", "feature")
	register(t, openWith(t, ada.opts), definition("x"), "console.log('better')\n")
	ada.commit("Better x")
	ada.must("push", "-q", "origin", "feature")
	bob.must("fetch", "-q")
	bob.must("checkout", "-q", "feature")
	gated := map[string]int{}
	bob.opts.Checker = counting(gated)
	r := openWith(t, bob.opts)
	found, err := r.Examine(t.Context())
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Problem, "has not checked") {
		t.Errorf("%s, %v", encode(found), err)
	}
	if verdicts, err := r.Verify(t.Context(), nil, nil); err != nil || !verdicts[0].Passed || gated["console.log('better')\n"] != 1 {
		t.Errorf("%+v, %v", verdicts, err)
	}
	writeTool(t, bob.opts, "x.ts", "console.log('looks fine')\n")
	if found, err = r.Examine(t.Context()); err != nil || len(found) != 1 || found[0].Severity != SeverityWarning {
		t.Errorf("%s, %v", encode(found), err)
	}
}
