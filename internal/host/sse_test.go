package host

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// sseEvent is an event as a client reads it.
type sseEvent struct{ id, kind, data string }

func (e sseEvent) number(t *testing.T) int {
	t.Helper()
	_, n, _ := strings.Cut(e.id, "-")
	number, err := strconv.Atoi(n)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// follow reads events after the one with the given id, until stop.
func (r *running) follow(last string) (next func() sseEvent, stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", r.Address()+"/api/events", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Tendril-Token", r.token)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		r.t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewReader(resp.Body)
	next = func() (e sseEvent) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				r.t.Errorf("the stream ends: %v", err)
				return e
			}
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch key {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				if e.kind != "" {
					return e
				}
			}
		}
	}
	return next, func() { cancel(); resp.Body.Close() }
}

// TestEvents_NothingLostNothingTwice: connections are cut again and again, and
// each event after the snapshot comes once (case X14).
func TestEvents_NothingLostNothingTwice(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	r := serve(t, home, nil)
	r.signIn()
	next, stop := r.follow("")
	snapshot := next()
	var s State
	if err := json.Unmarshal([]byte(snapshot.data), &s); err != nil || snapshot.kind != "snapshot" || snapshot.id != r.hub.eventID(s.Event) {
		t.Fatalf("%+v %v", snapshot, err)
	}
	last, seen := snapshot, 0
	for round := range 4 {
		for i := range 7 {
			r.hub.publish("item", map[string]int{"n": round*7 + i})
		}
		for seen < round*7+5 { // two are on their way when it is cut
			e := next()
			if e.kind == "item" {
				if e.data != fmt.Sprintf(`{"n":%d}`, seen) {
					t.Fatalf("event %d is %+v", seen, e)
				}
				seen++
			}
			if e.number(t) != last.number(t)+1 {
				t.Fatalf("%s after %s", e.id, last.id)
			}
			last = e
		}
		stop()
		next, stop = r.follow(last.id)
	}
	stop()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	again := serve(t, home, nil)
	again.signIn()
	next, stop = again.follow(last.id)
	defer stop()
	if e := next(); e.kind != "snapshot" || strings.HasPrefix(e.id, r.hub.epoch) {
		t.Errorf("another host goes on with the numbers of the first: %+v", e)
	}
}

// TestEvents_UnknownPositions get a snapshot.
func TestEvents_UnknownPositions(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), nil)
	r.signIn()
	for _, id := range []string{"x", "0-1", r.hub.eventID(99999), "-1", r.hub.epoch + "-", "\t", strings.Repeat("9", 1000)} {
		next, stop := r.follow(id)
		if e := next(); e.kind != "snapshot" {
			t.Errorf("%q: %+v", id, e)
		}
		stop()
	}
}

// TestEvents_FiftyClients read 10,000 events, each one all of them, while one
// reads nothing.
func TestEvents_FiftyClients(t *testing.T) {
	t.Parallel()
	const clients, events = 50, 10_000
	r := serve(t, t.TempDir(), nil)
	r.signIn()
	_, stopSlow := r.follow("")
	defer stopSlow()
	var group sync.WaitGroup
	var ready sync.WaitGroup
	ready.Add(clients)
	for range clients {
		group.Go(func() {
			next, stop := r.follow("")
			defer stop()
			next()
			ready.Done()
			n := -1
			for n < events-1 {
				e := next()
				if e.kind == "snapshot" { // it was behind what is kept
					var s State
					if err := json.Unmarshal([]byte(e.data), &s); err != nil {
						t.Error(err)
					}
					n = -2 // what comes next is known only from then on
					continue
				}
				if e.kind != "item" {
					continue
				}
				var got int
				if _, err := fmt.Sscanf(e.data, `{"n":%d`, &got); err != nil || n >= -1 && got != n+1 {
					t.Errorf("%s after %d (%v)", e.data, n, err)
					return
				}
				n = got
			}
		})
	}
	ready.Wait()
	for i := range events {
		r.hub.publish("item", map[string]any{"n": i, "text": strings.Repeat("x", 100)})
		if i%100 == 0 {
			time.Sleep(time.Millisecond) // about as fast as a model
		}
	}
	group.Wait()
}
