package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/session"
)

func (c *command) chatCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Have a conversation in the terminal",
		Long: `Have a conversation. Enter sends; Alt-Enter or Ctrl-J begins a new line; the arrow keys bring back earlier
prompts. Ctrl-C stops what the agent does, not the chat; Ctrl-D leaves it. What is typed while the agent
works is the draft of the next prompt. When stdin is no terminal, each of its lines is a prompt.

The conversation is kept. --continue goes on with the latest one of the workspace.

Exit codes: 0 done, 1 failed, 2 usage, 3 configuration or credentials, 5 sandbox or Deno missing, 130 interrupted.`,
		Example: "  tendril chat\n  tendril chat --continue",
		Args:    takes(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.chat(cmd.Context(), o) },
	}
	c.turnFlags(cmd, &o)
	return cmd
}

// chat goes from prompt to prompt until the person leaves.
func (c *command) chat(ctx context.Context, o runOptions) error {
	return c.withConversation(ctx, o, "chat", c.approver(), func(v *conversation) error {
		next, err := c.prompts(ctx, v)
		if err != nil {
			return err
		}
		for {
			prompt, err := next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if done, err := v.say(ctx, prompt); done || err != nil {
				return err
			}
		}
	})
}

// say plays a turn, or does what a line that begins with a slash asks for.
func (v *conversation) say(ctx context.Context, prompt string) (done bool, err error) {
	switch word := strings.TrimSpace(prompt); {
	case word == "":
		return false, nil
	case word == "/exit" || word == "/quit":
		return true, nil
	case word == "/help":
		fmt.Fprint(v.c.Err, "/new   begin a new conversation\n/exit  leave (or Ctrl-D)\nAnything else is a prompt. Enter sends, Alt-Enter or Ctrl-J begins a line, Ctrl-C stops a turn.\n")
		return false, nil
	case word == "/new":
		return false, v.renew(ctx)
	case strings.HasPrefix(word, "/") && !strings.ContainsAny(word[1:], " \n/."): // no path
		v.c.warn("there is no command %s; /help lists them", word)
		return false, nil
	}
	turn, stop := v.c.interrupts.scope(ctx)
	defer stop()
	_, err = v.turn(turn, prompt)
	if err == nil {
		err = ctx.Err()
	}
	return false, err
}

// renew begins another session.
func (v *conversation) renew(ctx context.Context) error {
	folder := v.folder
	if err := v.session.Close(); err != nil {
		return err
	}
	s, err := v.sessions.Create(ctx, session.New{Folder: folder, Client: "chat"})
	if err != nil {
		return err
	}
	v.session, v.asks = s, false
	fmt.Fprintln(v.c.Err, "a new conversation")
	return nil
}

// keptPrompts is how many earlier prompts the arrow keys bring back.
const keptPrompts = 200

// prompts is where the prompts come from: a person, or the lines of stdin.
func (c *command) prompts(ctx context.Context, v *conversation) (next func() (string, error), err error) {
	if !c.InTTY || !c.ErrTTY {
		return c.lines(ctx), nil
	}
	history, err := v.sessions.Prompts(ctx, v.folder, keptPrompts)
	if err != nil {
		return nil, err
	}
	return func() (string, error) {
		prompt, err := newEditor(history, c.quiet.Take(), "› ").ask(ctx, c.Std)
		if err == nil {
			history = append(history, prompt)
		}
		return prompt, err
	}, nil
}

// lines hands on the lines of stdin.
func (c *command) lines(ctx context.Context) func() (string, error) {
	lines := bufio.NewReaderSize(c.In, 64<<10)
	return func() (string, error) {
		line, err := cancellable(ctx, func() ([]byte, error) { return readLine(lines, maxPromptBytes) })
		if len(line) > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		return strings.TrimRight(string(line), "\r\n"), err
	}
}

// readLine reads up to a newline, and refuses what is longer than most bytes.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > most {
			return nil, usageError("a line of stdin is longer than %d MiB; put it into a file of the workspace and name the file", most>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
