package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/terminal"
)

// conversation is a session with the agent that goes on with it.
type conversation struct {
	c        *command
	folder   string
	agent    *agent.Agent
	sessions *session.Store
	session  *session.Session
	asks     bool // a person is asked about each new host, as was chosen for the session
}

// which says which session a command works with; the zero value is a new one.
type which struct {
	id   string // or its beginning, or "last"
	last bool   // of the workspace
}

// withConversation opens all that turns need, for do.
func (c *command) withConversation(ctx context.Context, o runOptions, client string, approver capability.Approver, do func(*conversation) error) error {
	cfg, dirs, err := c.settings()
	if err != nil {
		return err
	}
	m, err := c.chooseModel(ctx, cfg, o.model)
	if err != nil {
		return err
	}
	a, err := c.open(ctx, cfg, dirs, openOptions{workspace: o.workspace, create: true, approver: approver})
	if err != nil {
		return err
	}
	defer func() {
		if err := a.close(); err != nil {
			c.warn("%v", err)
		}
	}()
	if err := a.ready(ctx); err != nil {
		return err
	}
	v, err := c.converse(ctx, a, m, o, client)
	if err != nil {
		return err
	}
	if in, ok := c.In.(*os.File); ok && c.InTTY && (c.OutTTY || c.ErrTTY) { // what is typed would stand in what is shown
		c.quiet = terminal.Hush(in)
		defer func() {
			if ctx.Err() != nil {
				c.quiet.Hold() // Ctrl-C drops what was typed
			}
			c.quiet.Restore()
		}()
	}
	return do(v)
}

// converse opens a session and makes the agent.
func (c *command) converse(ctx context.Context, a *app, m chosenModel, o runOptions, client string) (*conversation, error) {
	system := agent.SystemPrompt(a.workspace.Path())
	if err := a.workspace.WriteDisplayCopy(system); err != nil {
		c.warn("%v", err)
	}
	sessions, err := a.openSessions(ctx)
	if err != nil {
		return nil, err
	}
	ag, err := agent.New(agent.Options{
		Model: m, Facts: m.facts(), System: system, Tools: agent.Tools(a.registry, a.executor()), Limits: o.limits(a), Spending: sessions,
	})
	if err != nil {
		return nil, err
	}
	s, err := openSession(ctx, sessions, o.session, session.New{Folder: a.workspace.Path(), Client: client})
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &conversation{c: c, folder: a.workspace.Path(), agent: ag, sessions: sessions, session: s, asks: info.Mode == session.ModeAsk}, nil
}

// limits are those of the settings, with what the flags say instead.
func (o runOptions) limits(a *app) agent.Limits {
	budget := a.cfg.Agent.Budget
	limits := agent.Limits{
		MaxTurns: a.cfg.Agent.MaxTurns, Timeout: a.cfg.Agent.Timeout,
		BudgetUSD: budget.Turn, SessionUSD: budget.Session, DayUSD: budget.Day,
	}
	if o.maxTurns > 0 {
		limits.MaxTurns = o.maxTurns
	}
	if o.timeout > 0 {
		limits.Timeout = o.timeout
	}
	return limits
}

// turn plays one turn and shows it. It returns how the turn ended.
func (v *conversation) turn(ctx context.Context, prompt string) (agent.Event, error) {
	show, done := v.c.front()
	defer done()
	if v.asks {
		ctx = capability.Asking(ctx)
	}
	var last agent.Event
	for e := range v.agent.Run(ctx, agent.Session{ID: v.session.ID(), Log: v.session}, []agent.Block{agent.Text(prompt)}) {
		if err := show(e); err != nil {
			return last, fmt.Errorf("the output cannot be written: %w", err)
		}
		last = e
	}
	return last, nil
}

// openSessions opens the sessions of the user, once.
func (a *app) openSessions(ctx context.Context) (*session.Store, error) {
	if a.sessions == nil {
		sessions, err := session.Open(ctx, a.db)
		if err != nil {
			return nil, err
		}
		a.sessions = sessions
	}
	return a.sessions, nil
}

// openSession loads the session that is meant, or begins one.
func openSession(ctx context.Context, sessions *session.Store, w which, n session.New) (*session.Session, error) {
	switch {
	case w.last:
		list, _, err := sessions.List(ctx, session.Query{Folder: n.Folder, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, usageError("there is no session of %s to go on with yet; leave --continue out", n.Folder)
		}
		return sessions.Load(ctx, list[0].ID)
	case w.id != "":
		info, err := findSession(ctx, sessions, w.id)
		if err != nil {
			return nil, err
		}
		if info.Folder != n.Folder {
			return nil, usageError("session %s works in %s; to go on with it: --workspace %q", info.ID, info.Folder, info.Folder)
		}
		return sessions.Load(ctx, info.ID)
	}
	return sessions.Create(ctx, n)
}

// findSession finds a session by its id, the beginning of one, or "last".
func findSession(ctx context.Context, sessions *session.Store, id string) (session.Info, error) {
	if id == "last" {
		list, _, err := sessions.List(ctx, session.Query{Limit: 1})
		if err != nil || len(list) > 0 {
			return first(list), err
		}
		return session.Info{}, &exitError{code: exitFailed, err: errors.New("there is no session yet")}
	}
	list, err := sessions.Match(ctx, id)
	switch {
	case err != nil:
		return session.Info{}, err
	case len(list) == 0:
		return session.Info{}, usageError("there is no session %q; see: tendril session list", id)
	case len(list) > 1 && list[0].ID != id:
		return session.Info{}, usageError("more than one session begins with %q; give more of its id", id)
	}
	return list[0], nil
}

func first(list []session.Info) session.Info {
	if len(list) == 0 {
		return session.Info{}
	}
	return list[0]
}

// ago says roughly how long ago t was.
func ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute", "minutes") + " ago"
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour", "hours") + " ago"
	}
	return t.Local().Format("2 Jan 2006")
}
