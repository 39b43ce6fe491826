package agent

import (
	"context"
	"sync"
)

// Log keeps the events of one session, in order. It is the seam for
// persistence: an event is appended before anybody sees it, and the history
// that a model gets is read back from the events (see [History]).
//
// Append is called by one turn at a time. It keeps all of the events or none,
// and not the slice. An error from it ends the turn.
type Log interface {
	Append(ctx context.Context, events ...Event) error
	Events(ctx context.Context) ([]Event, error)
}

// MemoryLog is a Log that lasts as long as the process.
type MemoryLog struct {
	mu     sync.Mutex
	events []*Event // pointers, because events are big and the slice grows
}

// Append implements [Log].
func (l *MemoryLog) Append(_ context.Context, events ...Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.events = append(l.events, &e)
	}
	return nil
}

// Events implements [Log].
func (l *MemoryLog) Events(context.Context) ([]Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := make([]Event, len(l.events))
	for i, e := range l.events {
		events[i] = *e
	}
	return events, nil
}
