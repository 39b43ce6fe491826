package session

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/store"
	"github.com/tendril-agent/tendril/internal/terminal"
)

func openAt(t testing.TB, path string) *Store {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func open(t testing.TB) *Store { return openAt(t, filepath.Join(t.TempDir(), "tendril.db")) }

func create(t testing.TB, s *Store) *Session {
	t.Helper()
	session, err := s.Create(t.Context(), New{Folder: "/work", Client: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// script makes the events of turns, with their numbers.
type script struct {
	seq  int64
	turn int
	out  []agent.Event
}

func (s *script) add(events ...agent.Event) *script {
	for _, e := range events {
		if e.Type == agent.TurnStarted {
			s.turn++
		}
		s.seq++
		e.Seq, e.Turn, e.Time = s.seq, s.turn, time.Now().UTC().Truncate(time.Millisecond)
		s.out = append(s.out, e)
	}
	return s
}

func prompt(text string) agent.Event {
	return agent.Event{Type: agent.TurnStarted, Model: "m", Message: &agent.Message{Role: agent.RoleUser, Blocks: []agent.Block{agent.Text(text)}}}
}

func answer(text string, calls ...*agent.Call) agent.Event {
	m := &agent.Message{Role: agent.RoleAssistant, Model: "m", Blocks: []agent.Block{agent.Text(text)}}
	for _, c := range calls {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.BlockCall, Call: c})
	}
	return agent.Event{Type: agent.AssistantMessage, Message: m}
}

func delta(text string) agent.Event { return agent.Event{Type: agent.TextDelta, Text: text} }

func usage(usd float64) agent.Event {
	return agent.Event{Type: agent.UsageReported, Usage: &agent.Usage{Input: 1}, CostUSD: &usd}
}

func end() agent.Event {
	return agent.Event{Type: agent.TurnFinished, Stop: agent.StopEndTurn, Usage: &agent.Usage{}}
}

func call(id string) *agent.Call {
	return &agent.Call{ID: id, Name: agent.ExecuteTool, Input: json.RawMessage(`{"name":"x","args":{"id":9007199254740993}}`)}
}

func appendAll(t testing.TB, s *Session, events []agent.Event) {
	t.Helper()
	if err := s.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

func types(events []agent.Event) []string {
	var list []string
	for _, e := range events {
		list = append(list, string(e.Type))
	}
	return list
}

func TestSession_ReadsBackWhatWasSaid(t *testing.T) {
	s := open(t)
	session := create(t, s)
	c := call("a")
	events := new(script).add(
		prompt("\x1b[31mWhat\tis \n there"), delta("Let"), delta(" me see"), answer("Let me see", c),
		agent.Event{Type: agent.ToolCallStarted, Call: c, CallID: "a", Tool: c.Name},
		agent.Event{Type: agent.ToolCallProgress, CallID: "a", Tool: c.Name, Progress: &agent.Progress{Stream: "stdout", Line: "1"}},
		agent.Event{Type: agent.ToolCallFinished, CallID: "a", Tool: c.Name, Result: &agent.Result{Status: agent.Completed, Text: "nul \x00 and \u2028"}},
		delta("Fine"), answer("Fine"), usage(0.25), end(),
	).out
	before := agent.History(events)
	for _, e := range events {
		appendAll(t, session, []agent.Event{e})
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := s.Load(t.Context(), session.ID())
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after := agent.History(got); !equalJSON(t, before, after) {
		t.Errorf("history after = %s", toJSON(t, after))
	}
	want := []string{"turn_started", "assistant_message", "tool_call_started", "tool_call_finished", "assistant_message", "usage", "turn_finished"}
	if !slices.Equal(types(got), want) {
		t.Errorf("events = %v, want %v", types(got), want)
	}
	if got[0].Session != session.ID() || got[len(got)-1].Seq != events[len(events)-1].Seq {
		t.Errorf("first = %+v, last = %+v", got[0], got[len(got)-1])
	}
	info, err := again.Info(t.Context())
	if err != nil || info.Turns != 1 || info.Title != "[31mWhat is" || info.CostUSD == nil || *info.CostUSD != 0.25 || info.Folder != "/work" || info.Client != "test" {
		t.Errorf("Info = %+v, %v", info, err)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func equalJSON(t *testing.T, a, b any) bool { return toJSON(t, a) == toJSON(t, b) }

// Whatever event a process dies after, what was stored is there, every call has
// its one result, and the session goes on.
func TestStore_LoadEndsWhatWasInterrupted(t *testing.T) {
	a, b := call("a"), call("b")
	whole := new(script).add(
		prompt("one"), delta("I "), delta("look"), answer("I look", a, b),
		agent.Event{Type: agent.ToolCallStarted, Call: a, CallID: "a", Tool: a.Name},
		agent.Event{Type: agent.ToolCallProgress, CallID: "a", Tool: a.Name, Progress: &agent.Progress{Stream: "stdout", Line: "1"}},
		agent.Event{Type: agent.ToolCallFinished, CallID: "a", Tool: a.Name, Result: &agent.Result{Status: agent.Completed, Text: "1"}},
		agent.Event{Type: agent.ToolCallStarted, Call: b, CallID: "b", Tool: b.Name},
		agent.Event{Type: agent.ToolCallFinished, CallID: "b", Tool: b.Name, Result: &agent.Result{Status: agent.Completed, Text: "2"}},
		delta("do"), answer("done"), usage(1), end(),
	).out
	path := filepath.Join(t.TempDir(), "tendril.db")
	for n := 1; n <= len(whole); n++ {
		dead := openAt(t, path)
		session := create(t, dead)
		appendAll(t, session, whole[:n])
		if _, err := dead.db.SQL.Exec("UPDATE leases SET started = 'never', machine = ?", machineOrSkip(t)); err != nil {
			t.Fatal(err)
		}
		alive := openAt(t, path)
		seen, err := alive.Events(t.Context(), session.ID())
		if err != nil {
			t.Fatal(err)
		}
		again, err := alive.Load(t.Context(), session.ID())
		if err != nil {
			t.Fatalf("after %d: %v", n, err)
		}
		events, err := again.Events(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last := events[len(events)-1]
		if !equalJSON(t, seen, events) {
			t.Errorf("after %d: without loading it, %s\nwas read", n, toJSON(t, seen))
		}
		if n < len(whole) && last.Stop != agent.StopInterrupted || last.Type != agent.TurnFinished {
			t.Errorf("after %d: last = %+v", n, last)
		}
		checkResults(t, n, events)
		if text := toJSON(t, agent.History(events)); n >= 2 && !strings.Contains(text, "I ") {
			t.Errorf("after %d: what was shown is lost: %s", n, text)
		}
		more := &script{seq: last.Seq, turn: last.Turn}
		appendAll(t, again, more.add(prompt("two"), answer("ok"), end()).out)
		again.Close()
	}
}

func machineOrSkip(t *testing.T) string {
	m := machine()
	if m == "" {
		t.Skip("this system does not tell when a process began")
	}
	return m
}

func checkResults(t *testing.T, n int, events []agent.Event) {
	t.Helper()
	started, finished := map[string]int{}, map[string]int{}
	for _, e := range events {
		switch e.Type {
		case agent.ToolCallStarted:
			started[e.CallID]++
		case agent.ToolCallFinished:
			if started[e.CallID] != 1 {
				t.Errorf("after %d: %s finished before it started", n, e.CallID)
			}
			finished[e.CallID]++
		}
	}
	if n >= 4 && (started["a"] != 1 || started["b"] != 1 || finished["a"] != 1 || finished["b"] != 1) {
		t.Errorf("after %d: started %v, finished %v", n, started, finished)
	}
}

func TestStore_OneWriterAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	one, two := openAt(t, path), openAt(t, path)
	session := create(t, one)
	var busy *BusyError
	if _, err := one.Load(t.Context(), session.ID()); !errors.As(err, &busy) || busy.PID != 0 {
		t.Errorf("a second load in one process: %v", err)
	}
	if _, err := two.Load(t.Context(), session.ID()); !errors.As(err, &busy) || busy.PID != os.Getpid() {
		t.Errorf("a load in another process: %v", err)
	}
	if err := two.Delete(t.Context(), session.ID()); !errors.As(err, &busy) {
		t.Errorf("a delete in another process: %v", err)
	}
	if _, err := two.Fork(t.Context(), session.ID(), New{}); err != nil {
		t.Errorf("a fork of a session in use: %v", err)
	}
	appendAll(t, session, new(script).add(prompt("long")).out)
	for _, s := range []*Store{one, two} {
		if events, err := s.Events(t.Context(), session.ID()); err != nil || len(events) != 1 {
			t.Errorf("a turn that runs was ended: %v, %v", types(events), err)
		}
	}
	session.Close()
	taken, err := two.Load(t.Context(), session.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Append(t.Context(), new(script).add(prompt("late")).out...); !errors.Is(err, ErrLost) {
		t.Errorf("an append without the lease: %v", err)
	}
	taken.Close()
	if _, err := one.Load(t.Context(), "nope"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a session that is not there: %v", err)
	}
}

func TestStore_LeaseOfASilentProcessExpires(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	one, two := openAt(t, path), openAt(t, path)
	one.process.started, one.process.machine = "", "elsewhere" // a process that cannot be seen from here
	session := create(t, one)
	for _, at := range []struct {
		after time.Duration
		free  bool
	}{{0, false}, {staleAfter - time.Second, false}, {staleAfter + time.Second, true}} {
		two.now = func() time.Time { return time.Now().Add(at.after) }
		loaded, err := two.Load(t.Context(), session.ID())
		if (err == nil) != at.free {
			t.Errorf("after %s: %v", at.after, err)
		}
		if err == nil {
			loaded.Close()
		}
	}
}

// The lease of a process that was killed is free at once; that of one that
// lives is not.
func TestStore_LeaseOfAKilledProcess(t *testing.T) {
	machineOrSkip(t)
	path := filepath.Join(t.TempDir(), "tendril.db")
	s := openAt(t, path)
	session := create(t, s)
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.SQL.Exec("UPDATE leases SET holder = 'child', pid = ?, started = ?", child.Process.Pid, startTime(child.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if _, err := s.Load(t.Context(), session.ID()); !errors.As(err, &busy) || busy.PID != child.Process.Pid {
		t.Errorf("while it lives: %v", err)
	}
	child.Process.Kill()
	child.Wait()
	if _, err := s.Load(t.Context(), session.ID()); err != nil {
		t.Errorf("after its death: %v", err)
	}
}

func TestStore_ListAndSearch(t *testing.T) {
	s := open(t)
	now := time.Now()
	for i, text := range []string{"sum the Expenses of märz", "count words", `100% of "odd" text_here`} {
		s.now = func() time.Time { return now.Add(time.Duration(i) * time.Minute) }
		session := create(t, s)
		sc := &script{}
		appendAll(t, session, sc.add(prompt(text), answer("the answer is forty-two in run "+string(rune('a'+i)))).out)
		session.Close()
	}
	titles := func(q Query) []string {
		t.Helper()
		list, _, err := s.List(t.Context(), q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		var got []string
		for _, info := range list {
			got = append(got, info.Title)
		}
		return got
	}
	for query, want := range map[string]int{
		"": 3, "expenses": 1, "marz": 1, "expens": 1, "answer forty": 3, "forty expenses": 0, "100%": 1, "%": 1, "_": 1, "NOT": 0, `"`: 1, "text_here": 1, "\x00": 3, "run b": 1, "*": 0, "AND OR": 0,
	} {
		if got := titles(Query{Text: query}); len(got) != want {
			t.Errorf("search for %q = %q, want %d", query, got, want)
		}
	}
	create(t, s) // in which nothing is said
	if got := titles(Query{}); len(got) != 3 {
		t.Errorf("listed %q", got)
	}
	if got := titles(Query{Folder: "/elsewhere"}); len(got) != 0 {
		t.Errorf("another folder has %q", got)
	}
	var pages []string
	for cursor := ""; ; {
		page, next, err := s.List(t.Context(), Query{Limit: 2, After: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page {
			pages = append(pages, info.Title)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if all := titles(Query{}); !slices.Equal(pages, all) || len(all) != 3 {
		t.Errorf("pages = %q, all = %q", pages, all)
	}
	if _, _, err := s.List(t.Context(), Query{After: "1; DROP TABLE"}); !errors.Is(err, ErrCursor) {
		t.Errorf("a wrong cursor: %v", err)
	}
	list, _, _ := s.List(t.Context(), Query{Text: "expens"})
	if len(list) != 1 || !strings.Contains(list[0].Match, "the Expenses of") {
		t.Errorf("match = %+v", list)
	}
}

func TestStore_ForkRenameDelete(t *testing.T) {
	s := open(t)
	session := create(t, s)
	sc := &script{}
	appendAll(t, session, sc.add(prompt("first needle"), answer("one"), usage(0.5), end(), prompt("second"), delta("half")).out)
	fork, err := s.Fork(t.Context(), session.ID(), New{Folder: "/other", Client: "test"})
	if err != nil {
		t.Fatal(err)
	}
	events, _ := fork.Events(t.Context())
	if got := types(events); !slices.Equal(got, []string{"turn_started", "assistant_message", "usage", "turn_finished"}) || events[0].Session != fork.ID() {
		t.Errorf("fork = %v of %s", got, events[0].Session)
	}
	info, _ := fork.Info(t.Context())
	if info.Parent != session.ID() || info.Title != "first needle" || info.Turns != 1 || info.Folder != "/other" {
		t.Errorf("fork = %+v", info)
	}
	if err := s.Rename(t.Context(), fork.ID(), " a b\n"); err != nil {
		t.Error(err)
	}
	if err := s.Rename(t.Context(), fork.ID(), " \n\x1b"); err == nil {
		t.Error("a blank title was taken")
	}
	session.Close()
	if err := s.Delete(t.Context(), session.ID()); err != nil {
		t.Fatal(err)
	}
	list, _, _ := s.List(t.Context(), Query{Text: "needle"})
	if len(list) != 1 || list[0].ID != fork.ID() || list[0].Title != "a b" {
		t.Errorf("after the delete a search finds %+v", list)
	}
	var left int
	for _, table := range []string{"events", "session_text"} {
		query := map[string]string{"events": "SELECT count(*) FROM events", "session_text": "SELECT count(*) FROM session_text"}[table]
		if err := s.db.SQL.QueryRow(query).Scan(&left); err != nil || table == "events" && left != 4 || table == "session_text" && left != 2 {
			t.Errorf("%s has %d rows, %v", table, left, err)
		}
	}
	if today, err := s.Today(t.Context()); err != nil || today != 0.5 {
		t.Errorf("Today = %v, %v: what was spent stays spent", today, err)
	}
	s.now = func() time.Time { return time.Now().AddDate(0, 0, 1) }
	if today, err := s.Today(t.Context()); err != nil || today != 0 {
		t.Errorf("tomorrow Today = %v, %v", today, err)
	}
}

func TestStore_ManySessionsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	stores := []*Store{openAt(t, path), openAt(t, path)}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			session, err := stores[i%2].Create(context.Background(), New{Folder: "/w"})
			if err != nil {
				t.Error(err)
				return
			}
			sc := &script{}
			sc.add(prompt("p"))
			for range 20 {
				sc.add(delta("x"))
			}
			sc.add(answer("a"), end())
			for _, e := range sc.out {
				if err := session.Append(context.Background(), e); err != nil {
					t.Error(err)
					return
				}
			}
			if events, err := session.Events(context.Background()); err != nil || len(events) != 3 {
				t.Errorf("%d events, %v", len(events), err)
			}
			session.Close()
		})
	}
	wg.Wait()
}

func TestStore_InMemory(t *testing.T) {
	s := openAt(t, store.Memory)
	session := create(t, s)
	appendAll(t, session, new(script).add(prompt("p"), answer("a"), end()).out)
	if list, _, err := s.List(t.Context(), Query{Text: "p"}); err != nil || len(list) != 1 {
		t.Errorf("List = %v, %v", list, err)
	}
	session.Close()
}

func TestTitle(t *testing.T) {
	long := strings.Repeat("x", maxTitle)
	for in, want := range map[string]string{
		"\n \x1b\na\tb\x00c\nd": "a b c", "👩\u200d💻 and ❤\ufe0f\u200d🔥": "👩\u200d💻 and ❤\ufe0f\u200d🔥", "می\u200cخواهم": "می\u200cخواهم",
		"\u200d a\u200d \u200db": "a b", "a\u200d\u200db": "a b", "a\u202eb\u2066c\u200fd": "a b c d", "\xff": "\ufffd",
		long: long, long + "y": long[:maxTitle-1] + "…", long[2:] + "👩\u200d💻": long[2:] + "👩…",
	} {
		if got := title(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	s := open(t)
	session := create(t, s)
	for _, to := range []string{"a\nb", "a\r\nb", "a\u2028b", long + "y", "", " \n\x1b"} {
		if err := s.Rename(t.Context(), session.ID(), to); !errors.Is(err, ErrTitle) {
			t.Errorf("%q: %v", to, err)
		}
	}
	for _, to := range []string{long, "👩\u200d💻", " a \n"} {
		if err := s.Rename(t.Context(), session.ID(), to); err != nil {
			t.Errorf("%q: %v", to, err)
		}
		if info, err := s.Info(t.Context(), session.ID()); err != nil || info.Title != strings.TrimSpace(to) {
			t.Errorf("%q: %q, %v", to, info.Title, err)
		}
	}
}

func FuzzTitle(f *testing.F) {
	f.Add("a\n\u200d👩\u200d💻\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := title(s)
		if len([]rune(got)) > maxTitle || terminal.Line(got) != got || got != "" && title(got) != got {
			t.Errorf("%q of %q", got, s)
		}
	})
}

func FuzzMatching(f *testing.F) {
	for _, s := range []string{"a", `"`, "*", "NEAR(a b)", "a:b", "^x", "\x00", "-a", "😀"} {
		f.Add(s)
	}
	s := open(f)
	session := create(f, s)
	if err := session.Append(f.Context(), new(script).add(prompt("a"), answer("b"), end()).out...); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, err := s.List(t.Context(), Query{Text: text}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// The mode of a session is kept with it and its forks, and a database from
// before there were modes has the one that changes nothing.
func TestStore_Modes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tendril.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context(), component, steps[:1]); err != nil {
		t.Fatal(err)
	}
	_, err = db.SQL.ExecContext(t.Context(), "INSERT INTO sessions (id, title, folder, client, parent, created, updated, turns) VALUES ('old', '', '/work', 'test', '', 1, 1, 1)")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	mode := func(id string) string {
		t.Helper()
		info, err := openAt(t, path).Info(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode
	}
	s := openAt(t, path)
	fresh := create(t, s).ID()
	for _, id := range []string{"old", fresh} {
		if got := mode(id); got != ModePolicy {
			t.Errorf("%s: %s", id, got)
		}
		if err := s.SetMode(t.Context(), id, ModeAsk); err != nil {
			t.Fatal(err)
		}
		fork, err := s.Fork(t.Context(), id, New{Folder: "/work", Client: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if mode(id) != ModeAsk || mode(fork.ID()) != ModeAsk {
			t.Errorf("%s: %s, its fork: %s", id, mode(id), mode(fork.ID()))
		}
	}
	if err := s.SetMode(t.Context(), "none", ModeAsk); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
