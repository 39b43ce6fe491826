package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/tendril-agent/tendril/internal/terminal"
)

// writeJSON writes v as one line that no terminal can be driven with.
func writeJSON(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode the output: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", terminal.EscapeJSON(line))
	return err
}

// result prints v as JSON with --json, else text.
func (c *command) result(v any, text string) error {
	if c.json {
		return writeJSON(c.Out, v)
	}
	c.print("%s\n", text)
	return nil
}
