//go:build soak && linux

package cli_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/session"
	"github.com/tendril-agent/tendril/internal/store"
	"github.com/tendril-agent/tendril/internal/testkit"
)

const (
	soakPrompts  = 10_000
	soakSessions = 16
)

// TestSoak_PromptsCancelsKills plays 10,000 prompts over 16 sessions with one
// agent process after the other: prompts are cancelled at random, processes are
// killed or lose their client at random. Each prompt is answered once, what was
// answered is kept, each history is valid, and no goroutine, process, file or row
// is left.
func TestSoak_PromptsCancelsKills(t *testing.T) {
	idle := testkit.NewProviderFunc(t, soakReply)
	k := &soak{s: newSandboxed(t, idle), kept: map[string][]string{}}
	before := k.life(t, 0, syscall.SIGQUIT) // opens the sessions
	for life := 1; k.count < soakPrompts; life++ {
		k.s.talkTo(testkit.NewProviderFunc(t, soakReply)) // a new one: each remembers its requests
		end := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, 0, syscall.SIGQUIT}[life%4]
		after := k.life(t, 200+rand.IntN(200), end)
		if end == syscall.SIGQUIT && after > before+2 {
			t.Errorf("%d goroutines at rest, at first %d\n%s", after, before, k.s.errs.String())
		}
		t.Logf("life %d: %d prompts, %d cancelled", life, k.count, k.cancelled)
		if t.Failed() {
			return
		}
	}
	k.checkRows(t)
}

// soakReply is chosen by what the person asks, see (*soak).play.
func soakReply(r testkit.Request) testkit.Reply {
	asked, last := lastAsked(r)
	_, kind, _ := strings.Cut(asked, " ")
	switch {
	case last == "tool":
		return testkit.OpenAIText("done " + asked)
	case kind == "register":
		return register("quick", "export default () => 1;")
	case kind == "run":
		return execute("quick")
	case kind == "list":
		return testkit.OpenAICalls(testkit.Call{ID: "l", Name: "listCapabilities", Args: `{}`})
	case kind == "hang":
		return hanging("half of " + asked)
	case kind == "drip":
		reply := testkit.OpenAIText("slowly " + asked)
		reply.Split, reply.Gap = "lines", 5*time.Millisecond
		return reply
	case kind == "busy" && rand.IntN(4) == 0:
		return testkit.Reply{Status: 429, Headers: map[string]string{"Retry-After": "0"}, Body: []byte(`{"error":{"message":"busy"}}`)}
	}
	return testkit.OpenAIText("answer to " + asked)
}

// soak is what all lives share.
type soak struct {
	s        *sandboxed
	sessions []string

	mu        sync.Mutex
	count     int                 // prompts
	cancelled int                 // of them
	kept      map[string][]string // by session, what was asked and answered
}

// life starts an agent, plays prompts in all sessions at once and ends it in the
// given way: 0 closes its input. With SIGQUIT it returns the number of goroutines
// at rest.
func (k *soak) life(t *testing.T, prompts int, end syscall.Signal) (goroutines int) {
	t.Helper()
	c := k.s.acp()
	c.answer(c.request("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}))
	if k.sessions == nil {
		for range soakSessions {
			k.sessions = append(k.sessions, c.newSession())
		}
		c.answer(c.prompt(k.sessions[0], "0 register"))
	} else {
		for _, sid := range k.sessions {
			if m := c.answer(c.request("session/load", map[string]any{"sessionId": sid, "cwd": c.folder, "mcpServers": []any{}})); m.Error != nil {
				t.Fatalf("load %s: %s\n%s", sid, m.raw, k.s.errs.String())
			}
		}
	}
	c.seen = nil
	l := &soakLife{soak: k, c: c, waiting: map[string]chan acpMessage{}, ended: make(chan struct{}), left: prompts}
	go l.dispatch()
	var group sync.WaitGroup
	for _, sid := range k.sessions {
		group.Go(func() { l.play(t, sid) })
	}
	if end == syscall.SIGKILL || end == syscall.SIGTERM {
		go func() {
			for l.remaining() > prompts/4 { // in the middle of it
				time.Sleep(time.Millisecond)
			}
			l.stopping.Store(true)
			_ = c.cmd.Process.Signal(end)
		}()
	}
	group.Wait()
	switch end {
	case 0:
		c.in.Close()
	case syscall.SIGQUIT:
		time.Sleep(200 * time.Millisecond) // what ends by itself
		_ = c.cmd.Process.Signal(end)
	}
	<-l.ended
	code := k.s.wait(c.cmd, 20*time.Second)
	if end == 0 && code != 0 {
		t.Errorf("exit code %d\n%s", code, k.s.errs.String())
	}
	eventually(t, "all processes are gone", func() bool { return len(processes(filepath.Dir(k.s.home))) == 0 })
	dump := k.s.errs.String()
	idle := strings.Count(dump, "created by net/http.(*Transport).dialConn") // two for each connection that is kept
	if idle > 2*soakSessions {
		t.Errorf("%d goroutines of connections to the model", idle)
	}
	return strings.Count(dump, "\ngoroutine ") - idle
}

// soakLife is one process and its client.
type soakLife struct {
	*soak
	c     *acpClient
	ended chan struct{} // its output has

	stopping atomic.Bool // it was told to end

	mu      sync.Mutex
	waiting map[string]chan acpMessage
	left    int // prompts to play
}

func (l *soakLife) dispatch() {
	defer close(l.ended)
	for m := range l.c.lines {
		if m.Method != "" {
			continue
		}
		l.mu.Lock()
		if answer := l.waiting[string(m.ID)]; answer != nil {
			answer <- m
			delete(l.waiting, string(m.ID))
		} else {
			l.c.t.Errorf("an answer to nothing, or a second one: %s", m.raw)
		}
		l.mu.Unlock()
	}
}

func (l *soakLife) remaining() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// send sends a prompt, unless enough were sent or the process is gone.
func (l *soakLife) send(sid, kind string) (asked string, answer chan acpMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return "", nil
	}
	l.left--
	l.soak.mu.Lock()
	l.soak.count++
	asked = fmt.Sprintf("%d %s", l.soak.count, kind)
	l.soak.mu.Unlock()
	answer = make(chan acpMessage, 1)
	l.c.lastID++
	id := fmt.Sprint(l.c.lastID)
	l.waiting[id] = answer
	line := `{"jsonrpc":"2.0","id":` + id + `,"method":"session/prompt","params":{"sessionId":"` + sid + `","prompt":[{"type":"text","text":"` + asked + `"}]}}`
	if _, err := l.c.in.Write([]byte(line + "\n")); err != nil {
		return "", nil // it was killed
	}
	return asked, answer
}

func (l *soakLife) cancel(sid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.c.in.Write([]byte(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + sid + `"}}` + "\n")) // it may be gone
}

// play asks in one session until all prompts are played or the process ends.
func (l *soakLife) play(t *testing.T, sid string) {
	for {
		kinds := []string{"say", "say", "say", "say", "list", "run", "hang", "drip", "drip", "busy"}
		kind := kinds[rand.IntN(len(kinds))]
		asked, answer := l.send(sid, kind)
		if answer == nil {
			return
		}
		cancels := kind == "hang" || rand.IntN(5) == 0
		if cancels {
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			l.cancel(sid)
		}
		select {
		case <-l.ended:
			return
		case <-time.After(time.Minute):
			t.Errorf("no answer to %q", asked)
			return
		case m := <-answer:
			reason := m.Result.StopReason
			if kind == "busy" && m.Error != nil && m.Error.Data.Kind == "rate_limit" {
				reason = "end_turn" // the provider was busy too often
			}
			if reason != "end_turn" && (!cancels && !l.stopping.Load() || reason != "cancelled") {
				t.Errorf("%q in %s: %s", asked, sid, m.raw)
				return
			}
			l.soak.mu.Lock()
			if reason == "cancelled" {
				l.soak.cancelled++
			}
			l.soak.kept[sid] = append(l.soak.kept[sid], asked)
			l.soak.mu.Unlock()
		}
	}
}

// checkRows looks into the database after the last life.
func (k *soak) checkRows(t *testing.T) {
	t.Helper()
	last := k.s.acp()
	last.answer(last.request("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}))
	last.answer(last.request("session/load", map[string]any{"sessionId": k.sessions[0], "cwd": last.folder, "mcpServers": []any{}}))
	last.answer(last.prompt(k.sessions[0], "0 run")) // sweeps what killed ones left
	last.done()
	db, err := store.Open(t.Context(), filepath.Join(k.s.home, "tendril.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for query, want := range map[string]int{
		`SELECT count(*) FROM sessions`: soakSessions,
		`SELECT count(*) FROM leases`:   0,
		`SELECT count(*) FROM events WHERE session NOT IN (SELECT n FROM sessions)`:                                                               0,
		`SELECT count(*) FROM session_text WHERE rowid NOT IN (SELECT n FROM events)`:                                                             0,
		`SELECT count(*) FROM (SELECT 1 FROM events WHERE type IN ('turn_started', 'turn_finished') GROUP BY session, turn HAVING count(*) <> 2)`: 0,
	} {
		var got int
		if err := db.SQL.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, want %d (%v)", query, got, want, err)
		}
	}
	sessions, err := session.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer sessions.Close()
	for sid, asked := range k.kept {
		events, err := sessions.Events(t.Context(), sid)
		if err != nil {
			t.Fatal(err)
		}
		prompts := map[string]int{}
		for _, e := range events {
			if e.Type == agent.TurnStarted {
				prompts[e.Message.Blocks[0].Text]++
			}
		}
		for _, text := range asked {
			if prompts[text] != 1 {
				t.Errorf("%s: %q is there %d times", sid, text, prompts[text])
			}
		}
	}
}
