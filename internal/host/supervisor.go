package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// An agent that crashes crashLimit times within crashWindow is not started
// again by itself.
const (
	crashLimit  = 3
	crashWindow = 30 * time.Second
	firstPause  = 250 * time.Millisecond // before it is started again; doubled for each crash in the window
)

// Agent is the state of the agent's process.
type Agent struct {
	Status   string    `json:"status" enum:"starting,ready,restarting,failed,stopped"`
	Since    time.Time `json:"since"`
	Error    string    `json:"error,omitempty" doc:"Why it is restarting or failed"`
	Stderr   []string  `json:"stderr,omitempty" doc:"Its last words"`
	Restarts int       `json:"restarts" doc:"Since the host started"`
}

// errNoAgent means that there is no agent to talk to right now.
var errNoAgent = errors.New("the agent is not running")

// supervisor keeps one agent process running.
type supervisor struct {
	command func() *exec.Cmd
	peer    peer
	changed func(Agent)  // called with each new state, in order
	down    func(*child) // called when a child that was ready is gone

	restart chan chan struct{} // a wish to start afresh

	mu    sync.Mutex
	state Agent
	child *child        // the one that is ready
	next  chan struct{} // closed when the state changes
}

func newSupervisor(command func() *exec.Cmd, p peer, changed func(Agent), down func(*child)) *supervisor {
	return &supervisor{
		command: command, peer: p, changed: changed, down: down,
		restart: make(chan chan struct{}), state: Agent{Status: "starting", Since: time.Now()},
		next: make(chan struct{}),
	}
}

// run keeps an agent running until ctx ends, and returns when it is gone.
func (s *supervisor) run(ctx context.Context) {
	defer s.set("stopped", nil, nil)
	var crashes []time.Time
	var asked chan struct{} // a wish to start afresh
	status := "starting"
	for {
		s.set(status, nil, nil)
		if asked != nil {
			close(asked) // the old one is gone, and nobody takes it for running
			asked = nil
		}
		c, err := s.attempt(ctx)
		if err == nil {
			select {
			case <-c.done:
				err = c.why()
			case asked = <-s.restart:
			case <-ctx.Done():
			}
			s.lose(c)
			c.stop()
		}
		switch {
		case ctx.Err() != nil:
			return
		case asked != nil:
			crashes = nil
		default:
			crashes = append(within(crashes, crashWindow), time.Now())
			if asked = s.pause(ctx, len(crashes), err, c); asked != nil {
				crashes = nil
			}
		}
		status = "restarting"
		s.mu.Lock()
		s.state.Restarts++
		s.mu.Unlock()
		if asked != nil {
			status = "starting"
		}
	}
}

// attempt starts a child and waits until it is ready.
func (s *supervisor) attempt(ctx context.Context) (*child, error) {
	c, err := startChild(ctx, s.command(), s.peer)
	if err != nil {
		return c, err
	}
	s.mu.Lock()
	s.child = c
	s.mu.Unlock()
	s.set("ready", nil, nil)
	return c, nil
}

// lose lets nobody use a child any more.
func (s *supervisor) lose(c *child) {
	s.mu.Lock()
	s.child = nil
	s.mu.Unlock()
	s.set("restarting", nil, nil)
	s.down(c)
}

// pause waits after a crash. It returns a wish to start afresh, if one ended the
// wait.
func (s *supervisor) pause(ctx context.Context, crashes int, err error, c *child) (asked chan struct{}) {
	var wait <-chan time.Time
	status := "failed"
	if crashes < crashLimit {
		status = "restarting"
		timer := time.NewTimer(firstPause << (crashes - 1))
		defer timer.Stop()
		wait = timer.C
	} else {
		err = fmt.Errorf("it stopped %d times within %s; the last time: %w", crashes, crashWindow, err)
	}
	s.set(status, err, c.lastWords())
	select {
	case <-wait:
	case asked = <-s.restart:
	case <-ctx.Done():
	}
	return asked
}

func (s *supervisor) set(status string, err error, stderr []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = Agent{Status: status, Since: time.Now(), Stderr: stderr, Restarts: s.state.Restarts}
	if err != nil {
		s.state.Error = err.Error()
	}
	close(s.next)
	s.next = make(chan struct{})
	s.changed(s.state)
}

// await returns the child that answers, and waits for one that is being
// started: until it is there, nothing starts it any more, or ctx ends.
func (s *supervisor) await(ctx context.Context) (*child, error) {
	for {
		s.mu.Lock()
		status, next := s.state.Status, s.next
		s.mu.Unlock()
		c, err := s.ready()
		if err == nil || status == "failed" || status == "stopped" {
			return c, err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// ready returns the child that answers.
func (s *supervisor) ready() (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != nil {
		return s.child, nil
	}
	if s.state.Status == "failed" {
		return nil, fmt.Errorf("%w: %s; restart it", errNoAgent, s.state.Error)
	}
	return nil, fmt.Errorf("%w yet (%s); try again in a moment", errNoAgent, s.state.Status)
}

// startAfresh ends the agent, if it runs, and starts it again without counting
// what was before. It returns when the old one is gone.
func (s *supervisor) startAfresh(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case s.restart <- done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func within(times []time.Time, window time.Duration) []time.Time {
	var kept []time.Time
	for _, t := range times {
		if time.Since(t) < window {
			kept = append(kept, t)
		}
	}
	return kept
}
