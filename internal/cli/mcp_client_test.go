package cli_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestMCP_OfficialClient drives the server with the protocol's own TypeScript
// SDK (test/clients/mcp): list, call, progress, cancel and list_changed, over
// stdio and over HTTP.
func TestMCP_OfficialClient(t *testing.T) {
	client, err := filepath.Abs("../../test/clients/mcp")
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the official MCP client was NOT tried")
	}
	if _, err := os.Stat(filepath.Join(client, "node_modules")); err != nil {
		t.Skip("the official MCP client was NOT tried: `make clients` installs it")
	}
	tendril, err := exec.LookPath("tendril")
	if err != nil {
		t.Fatal(err)
	}
	drive := func(s *mcpServer, args ...string) {
		cmd := exec.CommandContext(t.Context(), node, append([]string{filepath.Join(client, "client.mjs")}, args...)...)
		cmd.Env = s.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Run("stdio", func(t *testing.T) {
		s := newMCPServer(t)
		drive(s, "stdio", tendril, s.ws)
		s.checkNothingIsLeft()
	})
	t.Run("http", func(t *testing.T) {
		s := newMCPServer(t)
		url := s.startHTTP("--expose-capabilities")
		token, err := os.ReadFile(filepath.Join(s.home, "mcp-token"))
		if err != nil {
			t.Fatal(err)
		}
		drive(s, "http", url, string(token[:len(token)-1]))
		s.interrupt()
		s.ends(5 * time.Second)
		s.checkNothingIsLeft()
	})
}

var servingAt = regexp.MustCompile(`serving MCP at (http://\S+);`)

// startHTTP starts the server on a free port and returns its URL.
func (s *mcpServer) startHTTP(args ...string) string {
	s.t.Helper()
	s.cmd = exec.Command("tendril", append([]string{"mcp", "--http=127.0.0.1:0"}, args...)...)
	s.cmd.Env = s.env
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	lines := bufio.NewScanner(errs)
	url := ""
	for url == "" && lines.Scan() {
		s.errs.WriteString(lines.Text() + "\n")
		if m := servingAt.FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
	}
	if url == "" {
		s.t.Fatalf("it does not serve:\n%s", s.errs.String())
	}
	s.drained = make(chan struct{})
	go func() {
		defer close(s.drained)
		for lines.Scan() {
			s.errs.WriteString(lines.Text() + "\n")
		}
	}()
	return url
}
