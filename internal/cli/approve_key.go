package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
)

// questions asks in a chat, where stdin is read from prompt to prompt. It is
// nil when there is nobody to ask.
func (c *command) questions() capability.Approver {
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

// Approve implements [capability.Approver].
func (k *keyApprover) Approve(ctx context.Context, q capability.Question) (capability.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer agent.HoldClock(ctx)()
	if status := k.c.status; status != nil {
		status.hold()
		defer status.release()
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asked := &keyQuestion{text: question(q), answer: capability.Deny}
	_, err := tea.NewProgram(asked, tea.WithContext(ctx), tea.WithInput(k.c.In), tea.WithOutput(k.c.Err), tea.WithoutSignalHandler()).Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		fmt.Fprintln(k.c.Err, "no answer: denied")
		return capability.Deny, nil
	case ctx.Err() != nil:
		return capability.Deny, ctx.Err()
	case err != nil:
		return capability.Deny, nil // a terminal that cannot be asked says no
	}
	fmt.Fprintf(k.c.Err, "\n%s\n%s\n", asked.text, asked.said)
	if asked.stop {
		k.c.interrupts.interrupt(true)
	}
	return asked.answer, nil
}

// keyQuestion waits for the key that answers.
type keyQuestion struct {
	text   string
	answer capability.Answer
	said   string
	stop   bool // the turn, too
}

// Init implements [tea.Model].
func (q *keyQuestion) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (q *keyQuestion) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	pressed, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return q, nil
	}
	switch name := pressed.String(); name {
	case "ctrl+c", "esc":
		q.stop, q.said = name == "ctrl+c", "denied"
		return q, tea.Quit
	default:
		answer, ok := parseAnswer(name)
		if !ok {
			return q, nil
		}
		q.answer = answer
		q.said = map[capability.Answer]string{capability.Deny: "denied", capability.AllowOnce: "allowed once", capability.AllowAlways: "allowed always"}[answer]
	}
	return q, tea.Quit
}

// View implements [tea.Model].
func (q *keyQuestion) View() tea.View {
	if q.said != "" {
		return tea.NewView("") // what stays on the screen is written by Approve
	}
	return tea.NewView("\n" + q.text + "\n[d]eny, allow [o]nce, allow [a]lways: ")
}
