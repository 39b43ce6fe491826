package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
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
	return &keyApprover{c: c}
}

// keyApprover asks one question at a time, for one key.
type keyApprover struct {
	c  *command
	mu sync.Mutex
}

// Approve implements [capability.Approver]. Ctrl-C ends the turn and answers
// nothing.
func (k *keyApprover) Approve(ctx context.Context, q capability.Question) (capability.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer agent.HoldClock(ctx)()
	if status := k.c.status; status != nil {
		status.hold()
		defer status.release()
	}
	k.c.quiet.Hold() // what was typed before the question does not answer it
	waiting, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asked := &keyQuestion{text: question(q), answer: capability.Deny}
	_, err := tea.NewProgram(asked, tea.WithContext(waiting), tea.WithInput(k.c.In), tea.WithOutput(k.c.Err), tea.WithoutSignalHandler()).Run()
	switch {
	case ctx.Err() != nil:
		return capability.Deny, ctx.Err()
	case waiting.Err() != nil:
		fmt.Fprintln(k.c.Err, "no answer: denied")
		return capability.Deny, nil
	case err != nil:
		return capability.Deny, nil // a terminal that cannot be asked says no
	}
	fmt.Fprintf(k.c.Err, "\n%s\n%s\n", asked.text, asked.said)
	if asked.stop {
		k.c.interrupts.interrupt(true)
		return capability.Deny, context.Canceled
	}
	return asked.answer, nil
}

// question is what the person reads. What came from a model is cleaned and
// quoted.
func question(q capability.Question) string {
	if q.Name == "" {
		return terminal.Line(q.Ask())
	}
	text := fmt.Sprintf("%s\n  it says it does: %q", q.Ask(), q.Capability)
	q.Net = capability.HostNames(q.Net)
	text += "\n  all that it may do then: " + q.Grants.String()
	return terminal.Clean(text)
}
