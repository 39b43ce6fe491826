package egress

import (
	"maps"
	"sync"
	"time"
)

// maxDecisions bounds the decisions that are kept whatever they are about, the
// places whose first decision is kept also after these, so that no flood hides
// whom it was followed by, and the hosts of those that are only counted.
const maxDecisions = 1000

// Decision is what became of one request or tunnel.
type Decision struct {
	Time      time.Time     `json:"time"`
	Host      string        `json:"host"` // lower case; empty when the request named none that can be read
	Port      uint16        `json:"port"`
	Method    string        `json:"method,omitempty"` // "GET", "CONNECT", …; empty when it cannot be read
	Allowed   bool          `json:"allowed"`
	Reason    string        `json:"reason,omitempty"`  // why not, or what went wrong; empty when all went well
	Address   string        `json:"address,omitempty"` // ip:port that was dialed
	BytesUp   int64         `json:"bytes_up"`          // to the server, heads included
	BytesDown int64         `json:"bytes_down"`        // from the server, heads included
	Status    int           `json:"status,omitempty"`  // what the capability was answered; 0 when nothing was
	Duration  time.Duration `json:"duration_ns"`       // until the last byte
}

// journal keeps decisions in the order in which they were begun.
type journal struct {
	now func() time.Time

	mu      sync.Mutex
	entries []*entry
	seen    map[place]bool // of entries
	rest    map[string]int
}

// place is what a request was for.
type place struct {
	host string
	port uint16
}

// entry is one decision while it is being made.
type entry struct {
	journal  *journal
	decision Decision
}

// begin adds a decision, refused until it is told otherwise.
func (j *journal) begin(host string, port uint16, method string) *entry {
	e := &entry{journal: j, decision: Decision{Time: j.now(), Host: host, Port: port, Method: method}}
	j.mu.Lock()
	defer j.mu.Unlock()
	if at := (place{host, port}); len(j.entries) < maxDecisions || !j.seen[at] && len(j.seen) < maxDecisions {
		if j.seen == nil {
			j.seen = map[place]bool{}
		}
		j.seen[at] = true
		j.entries = append(j.entries, e)
		return e
	}
	if j.rest == nil {
		j.rest = map[string]int{}
	}
	if _, known := j.rest[host]; !known && len(j.rest) >= maxDecisions {
		host = ""
	}
	j.rest[host]++
	return e
}

// change is the one way to write to a decision.
func (e *entry) change(f func(*Decision)) {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	f(&e.decision)
}

// end notes how long it took.
func (e *entry) end() {
	now := e.journal.now()
	e.change(func(d *Decision) { d.Duration = now.Sub(d.Time) })
}

func (j *journal) all() []Decision {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]Decision, len(j.entries))
	for i, e := range j.entries {
		all[i] = e.decision
	}
	return all
}

func (j *journal) unlisted() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.rest)
}
