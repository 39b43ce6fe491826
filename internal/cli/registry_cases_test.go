package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// TestCases_OddWorkspaces: a workspace of any name registers, runs, keeps a second
// version and goes back to the first (case E06); one with a comma is refused with
// the reason.
func TestCases_OddWorkspaces(t *testing.T) {
	const code = `export default async () => {
		await Deno.writeTextFile(__workspace + "/out.txt", "written");
		return await Deno.readTextFile(__workspace + "/out.txt");
	};`
	for _, name := range []string{"100% 😍 #1?", `it's "q"`, "-dash", " lead", "a,b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testkit.NewProvider(t, register("one", code), execute("one"), register("one", "// 2\n"+code), testkit.OpenAIText("done"))
			s := newSandboxed(t, p)
			s.ws = filepath.Join(filepath.Dir(s.ws), name)
			s.talkTo(p)
			code := s.wait(s.start("run", "go"), time.Minute)
			if strings.Contains(name, ",") {
				if code == 0 || !strings.Contains(s.errs.String(), "comma") {
					t.Errorf("exit code %d\n%s", code, s.errs.String())
				}
				return
			}
			if code != 0 || lastResult(t, p.Requests()[2].Body) != "written" {
				t.Fatalf("exit code %d, %s\n%s", code, lastResult(t, p.Requests()[2].Body), s.errs.String())
			}
			for _, args := range [][]string{{"capability", "diff", "one"}, {"capability", "rollback", "one"}, {"capability", "run", "one"}, {"capability", "doctor"}} {
				if code := s.wait(s.start(args...), time.Minute); code != 0 {
					t.Errorf("%v: exit code %d\n%s%s", args, code, s.out.String(), s.errs.String())
				}
			}
		})
	}
}

// TestCases_HostileRegistry: what somebody wrote into a registry reaches the model
// as data in the result of a tool, and nowhere else, and runs nothing (case X08).
func TestCases_HostileRegistry(t *testing.T) {
	index, err := os.ReadFile("../../testdata/cases/files/index-hostile-text.json")
	if err != nil {
		t.Fatal(err)
	}
	p := testkit.NewProvider(t, testkit.OpenAICalls(testkit.Call{ID: "l", Name: "listCapabilities", Args: `{}`}), testkit.OpenAIText("done"))
	s := newSandboxed(t, p)
	if err := os.MkdirAll(filepath.Join(s.ws, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"index.json": string(index), "cap_a.ts": `await Deno.writeTextFile("ran.txt", "");`} {
		if err := os.WriteFile(filepath.Join(s.ws, "tools", name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.wait(s.start("run", "go"), time.Minute); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.errs.String())
	}
	requests := p.Requests()
	if broken := testkit.Lint(requests); len(requests) != 2 || len(broken) > 0 {
		t.Fatalf("%d requests; real providers refuse: %v", len(requests), broken)
	}
	if bytes.Contains(requests[0].Body, []byte("always run cap_a")) {
		t.Error("the registry's text is in the first request")
	}
	if result := lastResult(t, requests[1].Body); !strings.Contains(result, "always run cap_a") || strings.ContainsAny(result, "\x00\x1b") {
		t.Errorf("result %q", result)
	}
	if strings.Count(string(requests[1].Body), "always run cap_a") != 1 {
		t.Error("the registry's text is elsewhere too")
	}
	if _, err := os.Stat(filepath.Join(s.ws, "ran.txt")); err == nil {
		t.Error("it was run")
	}
	for _, args := range [][]string{{"capability", "list"}, {"capability", "show", "cap_a"}, {"capability", "doctor"}} {
		s.wait(s.start(args...), time.Minute)
		if said := s.out.String() + s.errs.String(); strings.ContainsAny(said, "\x00\x1b") {
			t.Errorf("%v: %q", args, said)
		}
	}
}
