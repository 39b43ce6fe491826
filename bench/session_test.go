package bench

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/store"
)

func sessions(b *testing.B) *session.Store {
	b.Helper()
	db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "tendril.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	s, err := session.Open(b.Context(), db)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// BenchmarkLoadSession loads a session of 10,000 messages and folds it into the
// history that a model gets.
func BenchmarkLoadSession(b *testing.B) {
	store := sessions(b)
	s, err := store.Create(b.Context(), session.New{Folder: "/work"})
	if err != nil {
		b.Fatal(err)
	}
	events, _ := longSession(10_000).Events(b.Context())
	if err := s.Append(b.Context(), events...); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		loaded, err := store.Load(b.Context(), s.ID())
		if err != nil {
			b.Fatal(err)
		}
		events, err := loaded.Events(b.Context())
		if err != nil || len(agent.History(events)) < 9_000 {
			b.Fatal(err, len(events))
		}
		loaded.Close()
	}
}

// BenchmarkAppendEvent commits one event.
func BenchmarkAppendEvent(b *testing.B) {
	s, err := sessions(b).Create(b.Context(), session.New{Folder: "/work"})
	if err != nil {
		b.Fatal(err)
	}
	seq := int64(0)
	for b.Loop() {
		seq++
		if err := s.Append(b.Context(), agent.Event{Type: agent.TextDelta, Seq: seq, Turn: 1, Time: time.Now(), Text: "word "}); err != nil {
			b.Fatal(err)
		}
	}
}
