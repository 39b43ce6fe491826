package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/tendril-agent/tendril/internal/terminal"
)

// output is stdout. It remembers the first error of writing, which most commands
// do not look for. It may be used by several goroutines.
type output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// outcome is that of a command that ended with err, if its output was written.
// Who closes a pipe, such as head, has read enough: then nothing is said.
func (o *output) outcome(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var exit *exitError
	switch {
	case o.err == nil, err != nil && !errors.Is(err, o.err) && !(errors.As(err, &exit) && exit.silent):
		return err
	case errors.Is(o.err, syscall.EPIPE):
		return &exitError{code: exitFailed, err: o.err, silent: true}
	}
	return fmt.Errorf("the output cannot be written: %w", o.err)
}

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
