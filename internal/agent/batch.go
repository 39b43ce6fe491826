package agent

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// batchTime is how long an event may be held back, so that those of a fast
// stream are stored together.
const batchTime = 20 * time.Millisecond

// batch emits events in groups. The first one after a pause goes out at once.
type batch struct {
	turn   *turn
	events []Event
	last   time.Time
	due    <-chan time.Time // when flush must be called
}

func (b *batch) add(events ...Event) {
	if len(events) == 0 {
		return
	}
	b.events = append(b.events, events...)
	switch wait := batchTime - time.Since(b.last); {
	case wait <= 0:
		b.flush()
	case b.due == nil:
		b.due = time.After(wait)
	}
}

func (b *batch) flush() {
	events := b.events
	b.events, b.due = nil, nil
	if len(events) > 0 {
		b.turn.emit(events...)
		b.last = time.Now()
	}
}

// received is a part of a reply, or why there is none.
type received struct {
	Part
	err error
}

// receive reads a stream in a goroutine of its own. The channel is closed at
// the stream's end, which stop brings about and waits for.
func receive(ctx context.Context, stream func(context.Context, Request) iter.Seq2[Part, error], request Request) (parts <-chan received, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan received, 64)
	go func() {
		defer close(out)
		defer func() {
			if p := recover(); p != nil {
				select {
				case out <- received{err: fmt.Errorf("the adapter of the model failed inside Tendril; this is a bug of ours: %v", p)}:
				case <-ctx.Done():
				}
			}
		}()
		for part, err := range stream(ctx, request) {
			select {
			case out <- received{part, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() {
		cancel()
		for range out { // until the stream has ended
		}
	}
}
