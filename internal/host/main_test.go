package host

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain also is the agent of tests: a process that behaves as fakeAgent says.
func TestMain(m *testing.M) {
	if how := os.Getenv("FAKE_AGENT"); how != "" {
		beAgent(how)
		return
	}
	goleak.VerifyTestMain(m)
}

// beAgent answers initialize, and then fails in the given way.
func beAgent(how string) {
	fmt.Fprintln(os.Stderr, "the agent is", how)
	switch how {
	case "silent":
		time.Sleep(time.Hour)
	case "broken":
		os.Exit(7)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal(lines.Bytes(), &m)
		switch {
		case m.Method == "initialize" && how == "old":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":0}}`+"\n", m.ID)
		case m.Method == "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`+"\n", m.ID)
			if how == "crashing" {
				panic("as it was told")
			}
		case m.Method == "_tendril/ready" && how == "asked":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, readyAnswer())
		case m.ID != nil && m.Method != "":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
		}
	}
	if how == "stubborn" {
		time.Sleep(time.Hour)
	}
}
