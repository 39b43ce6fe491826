package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/tendril-agent/tendril/internal/agent"
)

// ErrLost means that the lease went to another process, because this one gave
// no sign of life for too long.
var ErrLost = errors.New("another process has taken the session over, because this one did not answer for a while")

// Session is one conversation that the caller may go on with. It implements
// [agent.Log].
type Session struct {
	store *Store
	n     int64
	id    string

	deltas   int64 // the first event that a later one may replace; 0: none
	progress int64
	close    sync.Once
}

// ID is the session's id.
func (s *Session) ID() string { return s.id }

// Info is what is known of the session now.
func (s *Session) Info(ctx context.Context) (Info, error) { return s.store.Info(ctx, s.id) }

// SetMode changes the mode of the session.
func (s *Session) SetMode(ctx context.Context, mode string) error {
	return s.store.SetMode(ctx, s.id, mode)
}

// Close gives the lease back.
func (s *Session) Close() (err error) {
	s.close.Do(func() { err = s.store.release(s.n) })
	return err
}

// Append implements [agent.Log]: when it returns, the events are committed. A
// whole message replaces the deltas that showed it, and a result the progress
// before it: what is read back says the same with less.
func (s *Session) Append(ctx context.Context, events ...agent.Event) error {
	deltas, progress := s.deltas, s.progress
	err := s.store.change(ctx, func(tx transaction) error {
		if err := s.store.owns(tx, s.n); err != nil {
			return err
		}
		return s.insert(tx, events)
	})
	if err != nil {
		s.deltas, s.progress = deltas, progress
	}
	return err
}

// Events implements [agent.Log].
func (s *Session) Events(ctx context.Context) ([]agent.Event, error) {
	return s.store.Events(ctx, s.id)
}

func (s *Session) insert(tx transaction, events []agent.Event) error {
	statement, err := tx.PrepareContext(tx.ctx, "INSERT INTO events (session, seq, turn, type, data) VALUES (?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, e := range events {
		e.Session = "" // the row says it, also in a fork
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		result, err := statement.ExecContext(tx.ctx, s.n, e.Seq, e.Turn, string(e.Type), string(data))
		if err != nil {
			return err
		}
		n, err := result.LastInsertId()
		if err != nil {
			return err
		}
		if err := s.follow(tx, e, n); err != nil {
			return err
		}
	}
	return nil
}

// follow does what an event brings with it.
func (s *Session) follow(tx transaction, e agent.Event, n int64) error {
	switch e.Type {
	case agent.TextDelta, agent.ReasoningDelta:
		first(&s.deltas, e.Seq)
	case agent.ToolCallProgress:
		first(&s.progress, e.Seq)
	case agent.TurnStarted:
		s.deltas, s.progress = 0, 0
		if err := s.touch(tx, e, said(e)); err != nil {
			return err
		}
		return index(tx, n, said(e))
	case agent.AssistantMessage:
		if err := s.drop(tx, &s.deltas, e.Seq, agent.TextDelta, agent.ReasoningDelta); err != nil {
			return err
		}
		return index(tx, n, said(e))
	case agent.ToolCallFinished:
		return s.drop(tx, &s.progress, e.Seq, agent.ToolCallProgress, agent.ToolCallProgress)
	case agent.UsageReported:
		if e.CostUSD != nil {
			_, err := tx.exec("INSERT INTO spend (at, session, usd) VALUES (?, ?, ?)", e.Time.UnixMilli(), s.id, *e.CostUSD)
			return err
		}
	case agent.TurnFinished:
		return s.touch(tx, e, "")
	}
	return nil
}

func first(at *int64, seq int64) {
	if *at == 0 {
		*at = seq
	}
}

// drop deletes the events from *from up to before that have one of two types.
func (s *Session) drop(tx transaction, from *int64, before int64, a, b agent.EventType) error {
	if *from == 0 {
		return nil
	}
	_, err := tx.exec("DELETE FROM events WHERE session = ? AND seq >= ? AND seq < ? AND type IN (?, ?)", s.n, *from, before, string(a), string(b))
	*from = 0
	return err
}

func (s *Session) touch(tx transaction, e agent.Event, prompt string) error {
	_, err := tx.exec("UPDATE sessions SET updated = max(updated, ?), turns = ?, title = iif(title = '', ?, title) WHERE n = ?",
		e.Time.UnixMilli(), e.Turn, title(prompt), s.n)
	return err
}

// index makes text findable.
func index(tx transaction, n int64, text string) error {
	if text == "" {
		return nil
	}
	_, err := tx.exec("INSERT INTO session_text (rowid, text) VALUES (?, ?)", n, strings.ReplaceAll(text, "\x00", " "))
	return err
}

// said is the text of an event's message.
func said(e agent.Event) string {
	var texts []string
	if e.Message != nil {
		for _, b := range e.Message.Blocks {
			if b.Type == agent.BlockText {
				texts = append(texts, b.Text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// maxTitle is the length of a title in characters.
const maxTitle = 80

// title is the first line of s that says something, without what a terminal or
// a list could stumble over.
func title(s string) string {
	for line := range strings.Lines(s) {
		runes := []rune(words(line))
		switch {
		case len(runes) > maxTitle:
			return strings.TrimRightFunc(string(runes[:maxTitle-1]), func(r rune) bool { return r == ' ' || joins(r) }) + "…"
		case len(runes) > 0:
			return string(runes)
		}
	}
	return ""
}

// words is what is seen of a line, with one space between words. Of what is not
// seen only joiners are left, between what they join: emoji, and the letters of
// some scripts.
func words(line string) string {
	runes := []rune(strings.ToValidUTF8(line, "\uFFFD"))
	seen := func(i int) bool {
		return i >= 0 && i < len(runes) && unicode.IsGraphic(runes[i]) && !unicode.IsSpace(runes[i])
	}
	var b strings.Builder
	for i, r := range runes {
		if seen(i) || joins(r) && seen(i-1) && seen(i+1) {
			b.WriteRune(r)
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func joins(r rune) bool { return r == '\u200c' || r == '\u200d' }

// ErrTitle means that a session cannot be called so.
var ErrTitle = errors.New("the title of a session")

// checkTitle refuses a title that would not be kept as it is written.
func checkTitle(s string) error {
	s = strings.TrimSpace(s)
	switch n := len([]rune(words(s))); {
	case n == 0:
		return fmt.Errorf("%w cannot be blank", ErrTitle)
	case strings.ContainsAny(s, "\n\r\v\f\u0085\u2028\u2029"):
		return fmt.Errorf("%w must be one line; nothing is changed", ErrTitle)
	case n > maxTitle:
		return fmt.Errorf("%w may have %d characters, this one has %d; nothing is changed", ErrTitle, maxTitle, n)
	}
	return nil
}

// repair ends a turn that its process left unfinished.
func (s *Session) repair(tx transaction) error {
	events, err := read(tx.ctx, tx, s.id)
	if err != nil {
		return err
	}
	ends := agent.Interrupted(events)
	if len(ends) == 0 {
		return nil
	}
	return s.insert(tx, ends)
}
