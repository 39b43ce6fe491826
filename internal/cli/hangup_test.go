package cli_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// When nobody reads stdout any more, a turn ends although it has nothing to
// write, and so does the process (case C07; for MCP TestMCP_EndsWithItsClient).
func TestProtocols_EndWithTheirReader(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows tells at the next write only")
	}
	begin := map[string]func(*acpClient){
		"acp": func(c *acpClient) { c.prompt(c.begin(), "go") },
		"sidecar": func(c *acpClient) {
			c.answer(c.request("new_session", map[string]string{"workingDirectory": c.folder}))
			c.request("prompt", map[string]any{"messages": []any{map[string]string{"role": "user", "content": "go"}}})
		},
	}
	for command, begin := range begin {
		t.Run(command+" runs a quiet capability", func(t *testing.T) {
			c := newSandboxed(t, testkit.NewProvider(t, register("spinner", spinner), execute("spinner"))).client(command)
			begin(c)
			eventually(t, "running", func() bool {
				_, err := os.Stat(filepath.Join(c.folder, "running"))
				return err == nil
			})
			c.hangUp()
		})
		t.Run(command+" waits for a silent model", func(t *testing.T) {
			p := testkit.NewProvider(t, testkit.Reply{End: "hang"})
			c := newSandboxed(t, p).client(command)
			begin(c)
			eventually(t, "asked", func() bool { return len(p.Requests()) == 1 })
			c.hangUp()
		})
	}
}

// hangUp closes the process's stdout and checks that it ends in order.
func (c *acpClient) hangUp() {
	c.t.Helper()
	c.out.Close()
	if code := c.s.wait(c.cmd, 20*time.Second); code != 1 || !strings.Contains(c.s.errs.String(), "does not take our output any more") {
		c.t.Errorf("exit code %d\n%s", code, c.s.errs.String())
	}
	c.s.checkNothingIsLeft()
	if text := c.s.shown("last"); !strings.Contains(text, "> the turn ended early: interrupted") {
		c.t.Errorf("the session says:\n%s", text)
	}
}
