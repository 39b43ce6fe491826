package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/egress"
	"github.com/tendril-agent/tendril/internal/sandbox"
)

// TestRenderer_TellsAWarningOnce: the gate's step shows it, so its result need not.
func TestRenderer_TellsAWarningOnce(t *testing.T) {
	var shown strings.Builder
	r := newRenderer(io.Discard, newStatusLine(&shown, false), style{})
	call := agent.Call{ID: "a", Name: agent.RegisterTool, Input: []byte(`{"definition":{"name":"x"}}`)}
	for _, e := range []agent.Event{
		{Type: agent.ToolCallStarted, Call: &call, CallID: "a", Tool: call.Name, Note: "what only a program wants to know"},
		{Type: agent.ToolCallProgress, CallID: "a", Tool: call.Name, Progress: &agent.Progress{Step: "shape", State: "warned", Note: "1 trigger; 2 to 5 work best"}},
		{Type: agent.ToolCallFinished, CallID: "a", Tool: call.Name, Result: &agent.Result{
			Status: agent.Completed, Detail: []byte(`{"name":"x","version":"1.0.0","warnings":["shape: 1 trigger; 2 to 5 work best","x was something else"]}`),
		}},
	} {
		if err := r.event(e); err != nil {
			t.Fatal(err)
		}
	}
	if text := shown.String(); strings.Count(text, "1 trigger") != 1 || !strings.Contains(text, "x was something else") || strings.Contains(text, "a program") {
		t.Errorf("shown:\n%s", text)
	}
}

// TestNetworkText: what was sent before a connection was cut off is told, and so
// is that the list is not whole.
func TestNetworkText(t *testing.T) {
	decisions := []egress.Decision{
		{Method: "GET", Host: "a.test", Port: 80, Allowed: true, Address: "203.0.113.1:80", BytesUp: 10, BytesDown: 2048},
		{Method: "CONNECT", Host: "b.test", Port: 443, Address: "203.0.113.2:443", BytesUp: 4096, Reason: "the second ClientHello is for another server"},
		{Method: "GET", Host: "c.test", Port: 80, Reason: "c.test is not among the hosts"},
	}
	want := `allowed GET a.test:80 at 203.0.113.1:80, 10 B sent, 2.0 KiB received
cut off CONNECT b.test:443 at 203.0.113.2:443, 4.0 KiB sent, 0 B received; the second ClientHello is for another server
refused GET c.test:80: c.test is not among the hosts
and 3 more to other hosts
and 7 more to a.test`
	watched := sandbox.Result{Network: decisions, NetworkUnlisted: map[string]int{"a.test": 7, "": 3}, OSLayer: sandbox.OSLayer{On: true}}
	granted := sandbox.Grant{Net: []string{"a.test"}}
	if got := networkText(watched, granted); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := networkText(sandbox.Result{}, granted); !strings.HasPrefix(got, "not watched") {
		t.Errorf("without the proxy: %s", got)
	}
	if got := networkText(sandbox.Result{}, sandbox.Grant{}); got != "nothing was contacted" {
		t.Error(got)
	}
	if got := contacted(decisions); got != "; contacted a.test, b.test" {
		t.Error(got)
	}
}
