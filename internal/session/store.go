// Package session keeps conversations in the user's database: every event of
// every turn, committed before anybody sees it. Several processes may use one
// database; each session has one writer at a time.
package session

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tendril-agent/tendril/internal/store"
)

// ErrNotFound means that there is no session with that id.
var ErrNotFound = errors.New("there is no such session")

// BusyError means that another conversation has the session open: in this
// process, or in another one that lives.
type BusyError struct {
	ID  string
	PID int // of the other process; 0 for this one
}

func (e *BusyError) Error() string {
	if e.PID == 0 {
		return "it is in use already"
	}
	return fmt.Sprintf("it is in use by another process (%d); end that, or fork the session: tendril session fork %s", e.PID, e.ID)
}

// Store keeps the sessions of a user. It is safe for concurrent use.
type Store struct {
	db      *store.DB
	process process
	now     func() time.Time

	write sync.Mutex // SQLite has one writer; waiting here is cheaper than in its busy handler

	mu     sync.Mutex
	held   int           // leases
	took   bool          // some, ever
	stop   chan struct{} // ends the heartbeat; nil while there is none
	beaten sync.WaitGroup
}

// Open prepares the tables of db, which the caller closes after the store.
func Open(ctx context.Context, db *store.DB) (*Store, error) {
	if err := db.Migrate(ctx, component, steps); err != nil {
		return nil, err
	}
	return &Store{db: db, process: thisProcess(), now: time.Now}, nil
}

// Close gives back all leases.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.stop != nil {
		close(s.stop)
		s.stop = nil
	}
	took := s.took
	s.mu.Unlock()
	s.beaten.Wait()
	if !took {
		return nil
	}
	return s.change(context.Background(), func(tx transaction) error {
		_, err := tx.exec("DELETE FROM leases WHERE holder = ?", s.process.holder)
		return err
	})
}

// New describes a session that begins.
type New struct {
	Folder string // absolute; where its capabilities work
	Title  string // "": the beginning of the first prompt
	Client string // who talks: run, chat, or the name of an editor
}

// Info is what is known of a session without its events.
type Info struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Folder  string    `json:"folder"`
	Client  string    `json:"client"`
	Parent  string    `json:"parent,omitempty"` // the session that it was forked from
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Turns   int       `json:"turns"`
	Mode    string    `json:"mode"` // a Mode constant
	// CostUSD is what is known of what it cost, nil when nothing is.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// Match is where a search found it.
	Match string `json:"match,omitempty"`
}

// Create begins a session. The caller has its lease until [Session.Close].
func (s *Store) Create(ctx context.Context, n New) (*Session, error) {
	session := &Session{store: s, id: strings.ToLower(rand.Text())}
	err := s.change(ctx, func(tx transaction) error {
		if err := s.insert(tx, session, n, ""); err != nil {
			return err
		}
		return s.lease(tx, session.n)
	})
	if err != nil {
		return nil, fmt.Errorf("begin a session: %w", err)
	}
	s.hold()
	return session, nil
}

// insert adds the row of a session.
func (s *Store) insert(tx transaction, session *Session, n New, parent string) error {
	now := s.now().UnixMilli()
	result, err := tx.exec(`INSERT INTO sessions (id, title, folder, client, parent, created, updated, turns) VALUES (?, ?, ?, ?, ?, ?, ?, 0)`,
		session.id, title(n.Title), n.Folder, n.Client, parent, now, now)
	if err != nil {
		return err
	}
	session.n, err = result.LastInsertId()
	return err
}

// Load opens a session to go on with it. A turn that a process left unfinished
// is ended as interrupted; nothing is run again. The errors are [ErrNotFound]
// and [BusyError].
func (s *Store) Load(ctx context.Context, id string) (*Session, error) {
	session := &Session{store: s, id: id}
	err := s.change(ctx, func(tx transaction) error {
		if err := find(tx, id, &session.n); err != nil {
			return err
		}
		if err := s.vacant(ctx, tx, id); err != nil {
			return err
		}
		if err := s.lease(tx, session.n); err != nil {
			return err
		}
		return session.repair(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("load session %s: %w", id, err)
	}
	s.hold()
	return session, nil
}

func find(tx transaction, id string, n *int64) error {
	err := tx.queryRow("SELECT n FROM sessions WHERE id = ?", id).Scan(n)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

// Rename gives a session another title. The error may be [ErrNotFound], or
// [ErrTitle].
func (s *Store) Rename(ctx context.Context, id, to string) error {
	if err := checkTitle(to); err != nil {
		return err
	}
	err := s.change(ctx, func(tx transaction) error {
		var n int64
		if err := find(tx, id, &n); err != nil {
			return err
		}
		_, err := tx.exec("UPDATE sessions SET title = ? WHERE n = ?", title(to), n)
		return err
	})
	if err != nil {
		return fmt.Errorf("rename session %s: %w", id, err)
	}
	return nil
}

// The modes of a session say when a person is asked.
const (
	ModePolicy = "policy" // as the settings say
	ModeAsk    = "ask"    // about each new host
)

// SetMode changes the mode of a session, also of one that is in use. The error
// may be [ErrNotFound].
func (s *Store) SetMode(ctx context.Context, id, mode string) error {
	err := s.change(ctx, func(tx transaction) error {
		var n int64
		if err := find(tx, id, &n); err != nil {
			return err
		}
		_, err := tx.exec("UPDATE sessions SET mode = ? WHERE n = ?", mode, n)
		return err
	})
	if err != nil {
		return fmt.Errorf("change the mode of session %s: %w", id, err)
	}
	return nil
}

// Delete removes a session with all that was said in it. One that is in use is
// refused with [BusyError].
func (s *Store) Delete(ctx context.Context, id string) error {
	err := s.change(ctx, func(tx transaction) error {
		var n int64
		if err := find(tx, id, &n); err != nil {
			return err
		}
		if err := s.vacant(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.exec("DELETE FROM session_text WHERE rowid IN (SELECT n FROM events WHERE session = ?)", n); err != nil {
			return err
		}
		_, err := tx.exec("DELETE FROM sessions WHERE n = ?", n)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	return nil
}

// Fork begins a session with the finished turns of another one, which may be in
// use. The caller has the lease of the new one.
func (s *Store) Fork(ctx context.Context, id string, n New) (*Session, error) {
	fork := &Session{store: s, id: strings.ToLower(rand.Text())}
	err := s.change(ctx, func(tx transaction) error {
		var from int64
		if err := find(tx, id, &from); err != nil {
			return err
		}
		if err := s.insert(tx, fork, n, id); err != nil {
			return err
		}
		for _, statement := range []string{
			`UPDATE sessions SET title = iif(title = '', (SELECT title FROM sessions WHERE n = ?2), title),
			 mode = (SELECT mode FROM sessions WHERE n = ?2) WHERE n = ?1`,
			`INSERT INTO events (session, seq, turn, type, data) SELECT ?1, seq, turn, type, data FROM events WHERE session = ?2
			 AND turn <= (SELECT coalesce(max(turn), 0) FROM events WHERE session = ?2 AND type = 'turn_finished') ORDER BY seq`,
			`INSERT INTO session_text (rowid, text) SELECT copy.n, t.text FROM events copy JOIN events old ON old.session = ?2 AND old.seq = copy.seq
			 JOIN session_text t ON t.rowid = old.n WHERE copy.session = ?1`,
			`UPDATE sessions SET turns = (SELECT coalesce(max(turn), 0) FROM events WHERE session = ?1) WHERE n = ?1 AND ?2`,
		} {
			if _, err := tx.exec(statement, fork.n, from); err != nil {
				return err
			}
		}
		return s.lease(tx, fork.n)
	})
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", id, err)
	}
	s.hold()
	return fork, nil
}

// Today is what all sessions have cost since midnight, deleted ones included.
func (s *Store) Today(ctx context.Context) (usd float64, err error) {
	now := s.now()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	err = s.db.SQL.QueryRowContext(ctx, "SELECT coalesce(sum(usd), 0) FROM spend WHERE at >= ?", midnight.UnixMilli()).Scan(&usd)
	return usd, s.db.Noted(err)
}

// change runs f in a transaction, one at a time in this process.
func (s *Store) change(ctx context.Context, f func(transaction) error) error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.db.Noted(s.db.Write(ctx, func(tx *sql.Tx) error { return f(transaction{tx, ctx}) }))
}

// transaction is a transaction with its context.
type transaction struct {
	*sql.Tx
	ctx context.Context
}

func (t transaction) exec(query string, args ...any) (sql.Result, error) {
	return t.ExecContext(t.ctx, query, args...)
}

func (t transaction) queryRow(query string, args ...any) *sql.Row {
	return t.QueryRowContext(t.ctx, query, args...)
}
