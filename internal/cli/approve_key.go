package cli

import (
	tea "charm.land/bubbletea/v2"

	"github.com/tendril-agent/tendril/internal/capability"
)

// keyQuestion waits for the key that answers.
type keyQuestion struct {
	text   string
	answer capability.Answer
	said   string
	stop   bool // the turn: nothing was answered
}

// Init implements [tea.Model].
func (q *keyQuestion) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (q *keyQuestion) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	pressed, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return q, nil
	}
	switch pressed.String() {
	case "ctrl+c":
		q.stop, q.said = true, "not answered"
	case "d", "D", "n", "N", "esc":
		q.answer, q.said = capability.Deny, "denied"
	case "u", "U":
		q.answer, q.said = capability.AllowOnce, "allowed until Tendril ends"
	case "a", "A":
		q.answer, q.said = capability.AllowAlways, "allowed always"
	default:
		return q, nil
	}
	return q, tea.Quit
}

// View implements [tea.Model].
func (q *keyQuestion) View() tea.View {
	if q.said != "" {
		return tea.NewView("") // what stays on the screen is written by Approve
	}
	return tea.NewView("\n" + q.text + "\n[d]eny, allow [u]ntil Tendril ends, allow [a]lways: ")
}
