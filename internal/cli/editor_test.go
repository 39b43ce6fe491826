package cli

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

// What is pasted keeps its lines, however they end, and drives nothing.
func TestEditor_Paste(t *testing.T) {
	for pasted, want := range map[string]string{
		"a\r\nb\r\n\r\nc": "a\nb\n\nc", "a\rb\r\rc": "a\nb\n\nc", "a\nb\n\nc": "a\nb\n\nc", "a\r\nb\rc\nd": "a\nb\nc\nd", "\x1b[2Ja\u202e": "a",
	} {
		e := newEditor(nil, "", "› ")
		e.Init()
		e.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
		e.Update(tea.PasteMsg{Content: pasted})
		if got := e.area.Value(); got != want {
			t.Errorf("%q became %q, want %q", pasted, got, want)
		}
	}
}
