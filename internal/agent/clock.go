package agent

import (
	"context"
	"sync"
	"time"
)

// clock ends a turn that ran out of time. It stands still while it is held.
type clock struct {
	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration // when since was
	since time.Time
	holds int
}

type clockKey struct{}

func newClock(limit time.Duration, end func()) *clock {
	return &clock{timer: time.AfterFunc(limit, end), left: limit, since: time.Now()}
}

func (c *clock) stop() { c.timer.Stop() }

// HoldClock stops the clock of the turn that ctx belongs to until release is
// called: the time in which a person thinks about a question is not the turn's.
func HoldClock(ctx context.Context) (release func()) {
	c, _ := ctx.Value(clockKey{}).(*clock)
	if c == nil {
		return func() {}
	}
	c.hold()
	return sync.OnceFunc(c.release)
}

func (c *clock) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds++; c.holds == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds--; c.holds == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}
