package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/terminal"
)

// askTimeout is how long a question waits for a person; silence is a no.
const askTimeout = 5 * time.Minute

// approver asks at the terminal. Without one there is nobody to ask, and the
// answer is no: then it is nil.
func (c *command) approver() capability.Approver {
	if c.json || !c.InTTY || !c.ErrTTY {
		return nil
	}
	return &terminalApprover{c: c}
}

// terminalApprover asks one question at a time.
type terminalApprover struct {
	c       *command
	mu      sync.Mutex
	answers chan string // lines of stdin; one reader for the process
}

// Approve implements [capability.Approver].
func (t *terminalApprover) Approve(ctx context.Context, q capability.Question) (capability.Answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer agent.HoldClock(ctx)()
	if t.answers == nil {
		t.answers = make(chan string)
		go t.read()
	}
	if status := t.c.status; status != nil {
		status.hold()
		defer status.release()
	}
	timeout := time.NewTimer(askTimeout)
	defer timeout.Stop()
	fmt.Fprintf(t.c.Err, "\n%s\n", question(q))
	for {
		fmt.Fprint(t.c.Err, "[d]eny, allow [o]nce, allow [a]lways: ")
		select {
		case line, ok := <-t.answers:
			if !ok {
				return capability.Deny, nil
			}
			if answer, ok := parseAnswer(line); ok {
				return answer, nil
			}
		case <-timeout.C:
			fmt.Fprintln(t.c.Err, "no answer: denied")
			return capability.Deny, nil
		case <-ctx.Done():
			return capability.Deny, ctx.Err()
		}
	}
}

// read hands lines of stdin on until it ends. A read from a terminal cannot be
// cancelled, so this goroutine lasts as long as the process.
func (t *terminalApprover) read() {
	defer close(t.answers)
	lines := bufio.NewScanner(t.c.In)
	for lines.Scan() {
		t.answers <- lines.Text()
	}
}

// question is what the person reads. What came from a model is cleaned and
// quoted.
func question(q capability.Question) string {
	q.New, q.Net = hostNames(q.New), hostNames(q.Net)
	if q.Name == "" {
		return fmt.Sprintf("May the capabilities of this workspace reach %s?", terminal.Line(strings.Join(q.New, ", ")))
	}
	name := strings.TrimSpace(q.Name + " " + q.Version)
	text := fmt.Sprintf("May %s reach %s?\n  it says it does: %q", name, strings.Join(q.New, ", "), q.Capability)
	if len(q.Net) > len(q.New) {
		text += "\n  all its hosts: " + strings.Join(q.Net, ", ")
	}
	return terminal.Clean(text)
}

// hostNames are hosts as a person calls them.
func hostNames(hosts []string) []string {
	names := slices.Clone(hosts)
	for i, h := range names {
		if h == sandbox.AnyHost {
			names[i] = "any public host"
		}
	}
	return names
}

// parseAnswer takes whole words and their first letters; nothing else decides.
func parseAnswer(line string) (capability.Answer, bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "d", "deny", "n", "no":
		return capability.Deny, true
	case "o", "once":
		return capability.AllowOnce, true
	case "a", "always":
		return capability.AllowAlways, true
	}
	return "", false
}
