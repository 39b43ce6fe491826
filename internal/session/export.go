package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
)

// Export is a session as a file that programs read.
type Export struct {
	Session Info          `json:"session"`
	Events  []agent.Event `json:"events"`
}

// Markdown is a session as a person reads it: what was said, and what was done.
// Texts of model and tools stand as they are, in fences that they cannot close.
func Markdown(info Info, events []agent.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", plain(info.Title, "A conversation without a title"))
	fmt.Fprintf(&b, "- session: `%s`\n- folder: `%s`\n- begun: %s\n", info.ID, plain(info.Folder, "."), info.Created.Format(time.RFC3339))
	if info.CostUSD != nil {
		fmt.Fprintf(&b, "- cost: $%.4f, as far as it is known\n", *info.CostUSD)
	}
	var deltas strings.Builder // of a reply that is not whole
	rest := func() {
		if text := strings.TrimSpace(deltas.String()); text != "" {
			fmt.Fprintf(&b, "\n## Tendril\n\n%s\n", text)
		}
		deltas.Reset()
	}
	for _, e := range events {
		switch e.Type {
		case agent.TextDelta:
			deltas.WriteString(e.Text)
		case agent.AssistantMessage:
			deltas.Reset()
		case agent.TurnStarted, agent.TurnFinished:
			rest()
		}
		writeEvent(&b, e)
	}
	rest()
	if n := len(events); n > 0 && events[n-1].Type != agent.TurnFinished {
		b.WriteString("\n> the turn still runs\n")
	}
	return b.String()
}

func writeEvent(b *strings.Builder, e agent.Event) {
	switch e.Type {
	case agent.TurnStarted:
		fmt.Fprintf(b, "\n## You\n\n%s\n", strings.TrimSpace(said(e)))
	case agent.AssistantMessage:
		if text := strings.TrimSpace(said(e)); text != "" {
			fmt.Fprintf(b, "\n## Tendril\n\n%s\n", text)
		}
	case agent.ToolCallStarted:
		fmt.Fprintf(b, "\n**%s**\n\n%s", plain(e.Tool, "a tool"), fenced("json", pretty(e.Call)))
	case agent.ToolCallFinished:
		if e.Result != nil {
			fmt.Fprintf(b, "\n%s:\n\n%s", e.Result.Status, fenced("", e.Result.Text))
		}
	case agent.TurnFinished:
		switch {
		case e.Error != nil:
			fmt.Fprintf(b, "\n> the turn failed: %s\n", plain(e.Error.Message, "no reason was given"))
		case e.Stop != agent.StopEndTurn:
			fmt.Fprintf(b, "\n> the turn ended early: %s\n", e.Stop)
		}
	}
}

// pretty is the input of a call with its layout made readable; code stands in
// it as the string that it is.
func pretty(c *agent.Call) string {
	if c == nil {
		return ""
	}
	if c.Malformed != "" {
		return c.Malformed
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if encoder.Encode(c.Input) != nil {
		return string(c.Input)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// fenced puts text between fences longer than any in it.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fmt.Sprintf("%s%s\n%s\n%s\n", fence, language, strings.TrimRight(text, "\n"), fence)
}

// plain is s on one line, without what could close a code span.
func plain(s, otherwise string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "`", "'")), " ")
	if s == "" {
		return otherwise
	}
	return s
}
