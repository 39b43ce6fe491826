package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// TestCases_CapabilitiesOfPeers runs the handed capability sources through the
// built command: registered by a model, executed, the result read back from the
// next request (cases C08, E01, E04, H06, L03, X07, X12).
func TestCases_CapabilitiesOfPeers(t *testing.T) {
	for name, c := range map[string]struct {
		want, not []string
		failed    bool
	}{
		"empty_output":      {want: []string{"(no output)"}},
		"blank_output":      {want: []string{"(no output)"}},
		"fail_silent":       {want: []string{"exit code 3"}, failed: true},
		"never_resolves":    {want: []string{"never"}, failed: true},
		"exit_zero_early":   {want: []string{"(no output)"}},
		"timer_keeps_alive": {want: []string{"printed", "timed out"}, failed: true},
		"utf8_split":        {want: []string{"€"}, not: []string{"\u00e2"}},
		"nul_ansi":          {want: []string{"fake"}, not: []string{"\x00", "\x1b", "\\u0000", "\\u001b"}},
		"flood_one_line":    {want: []string{"printed more than the limit"}, failed: true},
		"flood_stderr":      {want: []string{"result"}},
		"big_image":         {want: []string{"printed more than the limit"}, failed: true},
		"injection_text":    {want: []string{"</tool_result>"}},
		"worker_escape":     {want: []string{"denied NotCapable"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(filepath.Join("../../testdata/cases/caps", name+".ts"))
			if err != nil {
				t.Fatal(err)
			}
			code := string(source)
			if strings.TrimSpace(code) == "" {
				code = "// nothing\n" // the gate refuses blank code
			}
			p := testkit.NewProvider(t, register(name, code), execute(name), testkit.OpenAIText("done"))
			s := newSandboxed(t, p)
			settings := filepath.Join(s.home, "config.json")
			raw, err := os.ReadFile(settings)
			if err != nil {
				t.Fatal(err)
			}
			timeout := 40_000
			if name == "timer_keeps_alive" {
				timeout = 4000 // it always needs all of it
			}
			raw = append(fmt.Appendf(nil, `{"sandbox":{"timeoutMs":%d},`, timeout), raw[1:]...)
			if err := os.WriteFile(settings, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if code := s.wait(s.start("run", "--json", "go"), 2*time.Minute); code != 0 {
				t.Fatalf("exit code %d\n%s", code, s.errs.String())
			}
			requests := p.Requests()
			if broken := testkit.Lint(requests); len(requests) != 3 || len(broken) > 0 {
				t.Fatalf("%d requests; real providers refuse: %v", len(requests), broken)
			}
			result := lastResult(t, requests[2].Body)
			for _, want := range c.want {
				if !strings.Contains(result, want) {
					t.Errorf("no %q in %.2000q", want, result)
				}
			}
			for _, not := range c.not {
				if strings.Contains(result, not) {
					t.Errorf("%q in %.2000q", not, result)
				}
			}
			if failed := strings.Contains(s.out.String(), `"tool":"execute","result":{"status":"failed"`); failed != c.failed {
				t.Errorf("failed is %v, want %v:\n%.3000s", failed, c.failed, s.out.String())
			}
			s.checkNothingIsLeft()
		})
	}
}

// lastResult is the last tool result of a request.
func lastResult(t *testing.T, body []byte) string {
	t.Helper()
	var request struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	for i := len(request.Messages) - 1; i >= 0; i-- {
		if request.Messages[i].Role == "tool" {
			return request.Messages[i].Content
		}
	}
	t.Fatal("no result")
	return ""
}

// TestCases_NoTemporaryFolder: where temporary files lie in the workspace, or
// nowhere, capabilities are built and run all the same (case D04).
func TestCases_NoTemporaryFolder(t *testing.T) {
	for name, folder := range map[string]string{"in the workspace": "ws", "missing": "none"} {
		t.Run(name, func(t *testing.T) {
			p := testkit.NewProvider(t, register("one", `console.log("it ran");`), execute("one"), testkit.OpenAIText("done"))
			s := newSandboxed(t, p)
			if err := os.Mkdir(s.ws, 0o755); err != nil {
				t.Fatal(err)
			}
			s.env = append(s.env, "TMPDIR="+filepath.Join(filepath.Dir(s.home), folder))
			if code := s.wait(s.start("run", "go"), time.Minute); code != 0 {
				t.Fatalf("exit code %d\n%s", code, s.errs.String())
			}
			if result := lastResult(t, p.Requests()[2].Body); result != "it ran" {
				t.Error(result)
			}
		})
	}
}
