package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
)

// Query chooses sessions.
type Query struct {
	Text   string // words that all occur in one message, or in the title; the last may be a beginning
	Folder string
	Limit  int    // 0: all
	After  string // the cursor that the page before ended with
}

// columns are those of [Info]; a query that uses them names sessions s and may
// join what it matched.
const columns = `s.id, s.title, s.folder, s.client, s.parent, s.created, s.updated, s.turns, s.mode,
	(SELECT sum(usd) FROM spend WHERE spend.session = s.id)`

// List returns the sessions in which something was said, those that were used
// last first, and a cursor for the next page, "" at the end.
func (s *Store) List(ctx context.Context, q Query) (list []Info, next string, err error) {
	list = []Info{}
	statement, args, err := q.sql()
	if err != nil {
		return list, "", err
	}
	rows, err := s.db.SQL.QueryContext(ctx, statement, args...)
	if err != nil {
		return list, "", fmt.Errorf("list the sessions: %w", s.db.Noted(err))
	}
	defer rows.Close()
	var cursor string
	for rows.Next() {
		var n int64
		var match sql.NullString
		info, err := scan(rows, &n, &match)
		if err != nil {
			return list, "", fmt.Errorf("list the sessions: %w", err)
		}
		if q.Limit > 0 && len(list) == q.Limit {
			next = cursor
			break
		}
		info.Match = excerpt(match.String, q.Text)
		cursor = fmt.Sprintf("%d.%d", info.Updated.UnixMilli(), n)
		list = append(list, info)
	}
	if err := rows.Err(); err != nil {
		return list, "", fmt.Errorf("list the sessions: %w", s.db.Noted(err))
	}
	return list, next, nil
}

// ErrCursor means that a cursor is not one of ours.
var ErrCursor = errors.New("the cursor is not one that a list of sessions ended with")

// sql is the query as a statement.
func (q Query) sql() (statement string, args []any, err error) {
	from, match := "sessions s", "NULL"
	where := []string{"s.turns > 0"}
	if text := strings.TrimSpace(strings.ReplaceAll(q.Text, "\x00", " ")); text != "" {
		from += ` LEFT JOIN (SELECT e.session, max(e.n) AS n FROM session_text t JOIN events e ON e.n = t.rowid WHERE session_text MATCH ? GROUP BY e.session) hit ON hit.session = s.n`
		match = "(SELECT text FROM session_text WHERE rowid = hit.n)"
		args = append(args, matching(text), "%"+escapeLike(text)+"%")
		where = append(where, `(hit.n IS NOT NULL OR s.title LIKE ? ESCAPE '\')`)
	}
	if q.Folder != "" {
		where, args = append(where, "s.folder = ?"), append(args, q.Folder)
	}
	if q.After != "" {
		at, n, ok := strings.Cut(q.After, ".")
		updated, err1 := strconv.ParseInt(at, 10, 64)
		number, err2 := strconv.ParseInt(n, 10, 64)
		if !ok || err1 != nil || err2 != nil {
			return "", nil, ErrCursor
		}
		where, args = append(where, "(s.updated, s.n) < (?, ?)"), append(args, updated, number)
	}
	statement = "SELECT " + columns + ", s.n, " + match + " FROM " + from + " WHERE " + strings.Join(where, " AND ") + " ORDER BY s.updated DESC, s.n DESC"
	if q.Limit > 0 {
		statement, args = statement+" LIMIT ?", append(args, q.Limit+1)
	}
	return statement, args, nil
}

// matching makes a full text query of what a person typed: nothing of it is
// syntax.
func matching(text string) string {
	fields := strings.Fields(text)
	for i, f := range fields {
		fields[i] = `"` + strings.ReplaceAll(f, `"`, `""`) + `"`
	}
	return strings.Join(fields, " ") + "*"
}

func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

type scanner interface{ Scan(dest ...any) error }

func scan(row scanner, more ...any) (Info, error) {
	var info Info
	var created, updated int64
	var cost sql.NullFloat64
	dest := append([]any{&info.ID, &info.Title, &info.Folder, &info.Client, &info.Parent, &created, &updated, &info.Turns, &info.Mode, &cost}, more...)
	if err := row.Scan(dest...); err != nil {
		return info, err
	}
	info.Created, info.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	if cost.Valid {
		info.CostUSD = &cost.Float64
	}
	return info, nil
}

// Info is what is known of one session; the error may be [ErrNotFound].
func (s *Store) Info(ctx context.Context, id string) (Info, error) {
	info, err := scan(s.db.SQL.QueryRowContext(ctx, "SELECT "+columns+" FROM sessions s WHERE s.id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return info, fmt.Errorf("session %s: %w", id, s.db.Noted(err))
	}
	return info, nil
}

// Prompts returns the last prompts of the sessions of a folder, the oldest
// first.
func (s *Store) Prompts(ctx context.Context, folder string, most int) ([]string, error) {
	rows, err := s.db.SQL.QueryContext(ctx, `SELECT t.text FROM events e JOIN sessions s ON s.n = e.session JOIN session_text t ON t.rowid = e.n
		WHERE s.folder = ? AND e.type = ? ORDER BY e.n DESC LIMIT ?`, folder, string(agent.TurnStarted), most)
	if err != nil {
		return nil, s.db.Noted(err)
	}
	defer rows.Close()
	var prompts []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		prompts = append(prompts, text)
	}
	slices.Reverse(prompts)
	return prompts, s.db.Noted(rows.Err())
}

// Match returns the sessions whose id begins with prefix, at most two.
func (s *Store) Match(ctx context.Context, prefix string) ([]Info, error) {
	rows, err := s.db.SQL.QueryContext(ctx, "SELECT "+columns+` FROM sessions s WHERE s.id LIKE ? ESCAPE '\' LIMIT 2`, escapeLike(prefix)+"%")
	if err != nil {
		return nil, s.db.Noted(err)
	}
	defer rows.Close()
	var list []Info
	for rows.Next() {
		info, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, s.db.Noted(rows.Err())
}

// Events returns the events of a session, in order, also of one that is in use.
// A turn that its process left unfinished is ended as [Store.Load] would end it,
// but nothing is written.
func (s *Store) Events(ctx context.Context, id string) ([]agent.Event, error) {
	if _, err := s.Info(ctx, id); err != nil {
		return nil, err
	}
	var busy *BusyError
	inUse := s.vacant(ctx, s.db.SQL, id) // asked first: what comes later may be the end
	if inUse != nil && !errors.As(inUse, &busy) {
		return nil, fmt.Errorf("session %s: %w", id, s.db.Noted(inUse))
	}
	events, err := read(ctx, s.db.SQL, id)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, s.db.Noted(err))
	}
	if inUse == nil {
		events = append(events, agent.Interrupted(events)...)
	}
	return events, nil
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// read reads the events of a session, all or none.
func read(ctx context.Context, q queryer, id string) ([]agent.Event, error) {
	rows, err := q.QueryContext(ctx, "SELECT e.seq, e.data FROM events e JOIN sessions s ON s.n = e.session WHERE s.id = ? ORDER BY e.seq", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	events := []agent.Event{}
	for rows.Next() {
		var seq int64
		var data sql.RawBytes
		if err := rows.Scan(&seq, &data); err != nil {
			return nil, err
		}
		var e agent.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return nil, fmt.Errorf("event %d cannot be read: %w", seq, err)
		}
		e.Session = id
		events = append(events, e)
	}
	return events, rows.Err()
}
