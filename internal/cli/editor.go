package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"github.com/tendril-agent/tendril/internal/terminal"
)

// editor is where a person writes one prompt: several lines, with the earlier
// prompts above.
type editor struct {
	area    textarea.Model
	history []string // the oldest first
	at      int      // which of them is shown; len(history): what is being written
	draft   string   // what was being written before the history was looked at
	hint    string
	done    bool // the prompt is ready
	left    bool // the person wants to go
	mark    string
}

// editorLines is how many lines of a prompt are seen at once.
const editorLines = 10

func newEditor(history []string, draft, mark string) *editor {
	area := textarea.New()
	area.Prompt = mark
	area.ShowLineNumbers = false
	area.DynamicHeight, area.MinHeight, area.MaxHeight = true, 1, editorLines
	area.MaxContentHeight = 100_000
	area.CharLimit = maxPromptBytes
	area.Placeholder = "ask for something; /help says what else there is"
	area.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	area.SetStyles(textarea.Styles{})
	area.SetVirtualCursor(false)
	area.SetValue(draft)
	return &editor{area: area, history: history, at: len(history), mark: mark}
}

// Init implements [tea.Model].
func (e *editor) Init() tea.Cmd { return e.area.Focus() }

// Update implements [tea.Model].
func (e *editor) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		e.area.SetWidth(msg.Width)
	case tea.KeyPressMsg:
		if quit, handled := e.key(msg.String()); handled {
			if quit {
				return e, tea.Quit
			}
			return e, nil
		}
		e.hint = ""
	case tea.PasteMsg:
		msg.Content = terminal.Clean(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(msg.Content))
		return e.pass(msg)
	}
	return e.pass(msg)
}

func (e *editor) pass(msg tea.Msg) (tea.Model, tea.Cmd) {
	area, cmd := e.area.Update(msg)
	e.area = area
	return e, cmd
}

// key handles the keys that are not the area's.
func (e *editor) key(name string) (quit, handled bool) {
	empty := strings.TrimSpace(e.area.Value()) == ""
	switch name {
	case "enter":
		e.done = !empty
		return e.done, true
	case "ctrl+c":
		if empty {
			e.hint = "to leave: Ctrl-D, or /exit"
		}
		e.area.Reset()
		e.at = len(e.history)
		return false, true
	case "ctrl+d":
		e.left = empty
		return empty, empty
	case "up", "ctrl+p":
		return false, e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0 && e.look(-1)
	case "down", "ctrl+n":
		info := e.area.LineInfo()
		return false, e.area.Line() == e.area.LineCount()-1 && info.RowOffset == info.Height-1 && e.look(+1)
	}
	return false, false
}

// look shows another prompt of the history, if there is one.
func (e *editor) look(step int) bool {
	to := e.at + step
	if to < 0 || to > len(e.history) {
		return false
	}
	if e.at == len(e.history) {
		e.draft = e.area.Value()
	}
	e.at = to
	if to == len(e.history) {
		e.area.SetValue(e.draft)
	} else {
		e.area.SetValue(e.history[to])
	}
	return true
}

// View implements [tea.Model].
func (e *editor) View() tea.View {
	if e.done || e.left {
		return tea.NewView("") // what stays on the screen is written by ask
	}
	text := e.area.View()
	if e.hint != "" {
		text += "\n" + e.hint
	}
	view := tea.NewView(text)
	view.Cursor = e.area.Cursor()
	return view
}

// ask lets the person write a prompt. The error is [io.EOF] when they left.
func (e *editor) ask(ctx context.Context, std Std) (string, error) {
	_, err := tea.NewProgram(e, tea.WithContext(ctx), tea.WithInput(std.In), tea.WithOutput(std.Err), tea.WithoutSignalHandler()).Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, tea.ErrInterrupted):
		return "", io.EOF
	case err != nil:
		return "", err
	case !e.done:
		return "", io.EOF
	}
	text := e.area.Value()
	indent := "\n" + strings.Repeat(" ", len([]rune(e.mark)))
	fmt.Fprintln(std.Err, e.mark+strings.ReplaceAll(terminal.Clean(text), "\n", indent))
	return text, nil
}
