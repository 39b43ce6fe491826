package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/host"
	"github.com/tendril-agent/tendril/internal/terminal"
	"github.com/tendril-agent/tendril/internal/window"
)

// windowCommand is the native window, a process of its own: the toolkit may
// crash, and the host goes on.
func (c *command) windowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "window", Short: "Show the app; started by the app", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return window.Serve(cmd.Context(), c.In, os.Stdout, c.Getenv)
		},
	}
}

// shownWindow is the window of the app.
type shownWindow struct {
	mu     sync.Mutex
	window *window.Window // nil while there is none
}

// raise brings the window forward at a link. It is false when nobody shows
// windows here.
func (s *shownWindow) raise(link string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.window != nil && s.window.Raise(link) == nil
}

func (s *shownWindow) set(w *window.Window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window = w
}

// attendWindow shows the app until its window is closed or ctx ends. A window
// that crashes is opened again, as one of a browser. Where none can be opened
// the link is printed and the host goes on.
func (c *command) attendWindow(ctx context.Context, s *shownWindow, h *host.Host, dirs config.Dirs) {
	for kind := window.Kind(""); ; kind = window.App {
		w, err := window.Open(ctx, window.Options{
			URL: h.Link(), Title: "Tendril", Kind: kind, ProfileDir: filepath.Join(dirs.Tendril, "window"),
			Native: []string{c.Executable, "window"}, Getenv: c.Getenv,
			Log: func(text string) { fmt.Fprintf(c.Err, "! %s\n", terminal.Line(text)) },
		})
		if err != nil {
			if ctx.Err() == nil {
				c.warn("%v", err)
				c.showLink(h.Link(), hostOptions{noOpen: true})
				<-ctx.Done()
			}
			return
		}
		if w.Kind() == window.Browser {
			fmt.Fprintf(c.Err, "Tendril is open in your browser, at %s. Ctrl-C ends it\n", h.Address())
		}
		s.set(w)
		<-w.Closed()
		s.set(nil)
		if w.Err() == nil || kind == window.App || ctx.Err() != nil {
			return
		}
		c.warn("the window crashed: %v", w.Err())
	}
}
