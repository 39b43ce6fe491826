package host

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// deaf takes what a child tells.
type deaf struct{}

func (deaf) handle(context.Context, *child, *jsonrpc.Request) (any, error) { return nil, nil }
func (deaf) overheard(string, []byte)                                      {}

// supervised is a supervisor of agents that behave as how says, and the states
// it was in.
type supervised struct {
	*supervisor
	how atomic.Value

	mu     sync.Mutex
	states []Agent
	cmds   []*exec.Cmd
}

func supervise(t *testing.T, how string) *supervised {
	t.Helper()
	s := &supervised{}
	s.how.Store(how)
	s.supervisor = newSupervisor(func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "FAKE_AGENT="+s.how.Load().(string))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cmds = append(s.cmds, cmd)
		return cmd
	}, deaf{}, func(a Agent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.states = append(s.states, a)
	}, func(*child) {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, cmd := range s.cmds {
			if cmd.Process != nil && cmd.ProcessState == nil {
				t.Errorf("process %d was not waited for", cmd.Process.Pid)
			}
		}
	})
	return s
}

// reaches waits for a state and returns it, with how many starts led to it.
func (s *supervised) reaches(t *testing.T, status string) (a Agent, starts int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		s.mu.Lock()
		if n := len(s.states); n > 0 {
			a = s.states[n-1]
		}
		starts = len(s.cmds)
		s.mu.Unlock()
		if a.Status == status {
			return a, starts
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never %s: %+v", status, a)
	return a, starts
}

func TestSupervisor_GivesUpAfterThreeCrashes(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{"crashing": "exit status 2", "broken": "exit status 7", "old": "version 0 of the protocol"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := supervise(t, how)
			a, starts := s.reaches(t, "failed")
			if starts != crashLimit || !strings.Contains(a.Error, want) || !strings.Contains(strings.Join(a.Stderr, "\n"), "the agent is "+how) {
				t.Errorf("%d starts: %+v", starts, a)
			}
			if _, err := s.ready(); err == nil || !strings.Contains(err.Error(), "restart it") {
				t.Error(err)
			}
			s.how.Store("good")
			if err := s.startAfresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a, starts := s.reaches(t, "ready"); starts != crashLimit+1 || a.Error != "" {
				t.Errorf("%d starts: %+v", starts, a)
			}
		})
	}
}

// TestSupervisor_AfreshForgetsCrashes: what was before a restart does not count.
func TestSupervisor_AfreshForgetsCrashes(t *testing.T) {
	t.Parallel()
	s := supervise(t, "good")
	for range crashLimit + 1 {
		a, _ := s.reaches(t, "ready")
		c, err := s.ready()
		if err != nil {
			t.Fatal(err, a)
		}
		if err := killGroup(c.cmd.Process); err != nil {
			t.Fatal(err)
		}
		<-c.done
		s.reaches(t, "ready")
		if err := s.startAfresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.reaches(t, "ready")
}

// TestSupervisor_Await: who needs the agent while it is being started gets it
// as soon as it answers, and hears when it does not come.
func TestSupervisor_Await(t *testing.T) {
	t.Parallel()
	s := supervise(t, "good")
	c, err := s.await(t.Context()) // at once
	if err != nil {
		t.Fatal(err)
	}
	if err := killGroup(c.cmd.Process); err != nil {
		t.Fatal(err)
	}
	s.reaches(t, "restarting")
	if again, err := s.await(t.Context()); err != nil || again == c {
		t.Errorf("after a crash: %v %v", again, err)
	}
	s.how.Store("silent")
	go func() { _ = s.startAfresh(t.Context()) }()
	s.reaches(t, "starting")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.await(ctx); err == nil || !strings.Contains(err.Error(), "try again in a moment") {
		t.Errorf("silent: %v", err)
	}
	broken := supervise(t, "broken")
	broken.reaches(t, "restarting")
	if _, err := broken.await(t.Context()); err == nil || !strings.Contains(err.Error(), "restart it") {
		t.Errorf("broken: %v", err)
	}
}

func TestSupervisor_SilentAgentIsKilled(t *testing.T) {
	t.Parallel()
	s := supervise(t, "silent")
	a, _ := s.reaches(t, "restarting")
	if !strings.Contains(a.Error, "did not answer within 10s") {
		t.Errorf("%+v", a)
	}
}

// TestSupervisor_StubbornAgentIsEnded although it does not end with its input.
func TestSupervisor_StubbornAgentIsEnded(t *testing.T) {
	t.Parallel()
	s := supervise(t, "stubborn")
	s.reaches(t, "ready")
}
