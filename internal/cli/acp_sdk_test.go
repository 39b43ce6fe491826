package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// The official TypeScript SDK drives the agent: its client checks each message
// against the protocol's schema.
func TestACP_TypeScriptSDK(t *testing.T) {
	clients, err := filepath.Abs("../../test/clients/acp")
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	if _, err := os.Stat(filepath.Join(clients, "node_modules", "@agentclientprotocol")); err != nil {
		t.Skip("the SDK is not installed; make test does that")
	}
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		var body struct {
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		_ = json.Unmarshal(r.Body, &body)
		last := body.Messages[len(body.Messages)-1]
		switch {
		case last.Role == "tool":
			return testkit.OpenAIText("built")
		case bytes.Contains(last.Content, []byte("hello")):
			return testkit.OpenAIText("hello yourself")
		case bytes.Contains(last.Content, []byte("build")):
			return networked("build-1", "fetcher", "example.com")
		case bytes.Contains(last.Content, []byte("forever")):
			return hanging("endless")
		}
		return testkit.JSON(400, map[string]any{"error": map[string]string{"message": "no"}})
	})
	s := newSandboxed(t, p)
	folder := filepath.Join(filepath.Dir(s.home), "project")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join(clients, "client.mjs"), folder)
	cmd.Env = s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	s.checkNothingIsLeft()
}
