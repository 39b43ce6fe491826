package cli

import (
	"context"
	"reflect"
	"sync"

	"github.com/tendril-agent/tendril/internal/config"
)

// lender keeps the workspace open for the app. When the settings have changed it
// opens it again; the old one is closed by the last who uses it.
type lender struct {
	s *services

	mu      sync.Mutex
	current *loan
}

// loan is an open workspace and how often it is in use.
type loan struct {
	*app
	cfg   *config.Config
	users int
	old   bool // another one has taken its place
}

// use lends the workspace, as the settings are now. It must exist.
func (l *lender) use(ctx context.Context, do func(*app) error) error {
	a, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer l.giveBack(a)
	return do(a.app)
}

func (l *lender) take(ctx context.Context) (*loan, error) {
	c := l.s.command()
	cfg, dirs, err := c.settings()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.current; a == nil || a.denoErr != nil || !reflect.DeepEqual(a.cfg, cfg) { // Deno may be there by now
		opened, err := c.open(ctx, cfg, dirs, openOptions{workspace: l.s.options.workspace, listBytes: everything})
		if err != nil {
			return nil, err
		}
		l.retire()
		l.current = &loan{app: opened, cfg: cfg}
	}
	l.current.users++
	return l.current, nil
}

func (l *lender) giveBack(a *loan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.users--; a.users == 0 && a.old {
		l.end(a)
	}
}

// close closes what nobody uses.
func (l *lender) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retire()
}

// retire lets the current one be the last of its use. The lender is locked.
func (l *lender) retire() {
	a := l.current
	if l.current = nil; a == nil {
		return
	}
	if a.old = true; a.users == 0 {
		l.end(a)
	}
}

func (l *lender) end(a *loan) {
	if err := a.app.close(); err != nil {
		l.s.c.warn("%v", err)
	}
}
