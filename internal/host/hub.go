package host

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
)

// The most that is kept for clients that come back.
const (
	keepEvents = 8192
	keepBytes  = 16 << 20
)

// event is what one client reads as one server-sent event.
type event struct {
	id   uint64
	kind string
	data []byte // JSON on one line
}

// hub keeps the last events. Clients read it at their own pace, each with a
// position of its own, so that a slow one holds up nobody; who falls behind what
// is kept gets a snapshot.
type hub struct {
	epoch string // of this process

	mu      sync.Mutex
	events  []event
	bytes   int
	last    uint64        // id of the newest event; 0 is before the first
	changed chan struct{} // closed by the next event
}

func newHub() *hub {
	return &hub{epoch: strings.ToLower(rand.Text()[:12]), changed: make(chan struct{})}
}

// publish adds an event. What cannot be encoded is a bug.
func (h *hub) publish(kind string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.events = append(h.events, event{h.last, kind, data})
	h.bytes += len(data)
	for len(h.events) > keepEvents || h.bytes > keepBytes && len(h.events) > 1 {
		h.bytes -= len(h.events[0].data)
		h.events[0].data = nil
		h.events = h.events[1:]
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// position is the id of the newest event.
func (h *hub) position() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// start is the position before all that is kept.
func (h *hub) start() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last - uint64(len(h.events))
}

// after returns the events after a position, and what is closed when there are
// more. It is not ok when some of them are not kept any more, or are yet to come.
func (h *hub) after(position uint64) (events []event, changed <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.last - uint64(len(h.events)) + 1
	if position > h.last || position+1 < first {
		return nil, nil, false
	}
	return append(events, h.events[position+1-first:]...), h.changed, true
}

// eventID is how clients know an event: <epoch>-<id>.
func (h *hub) eventID(id uint64) string { return h.epoch + "-" + strconv.FormatUint(id, 10) }

// parse reads what eventID wrote. An id of another process is not ok.
func (h *hub) parse(id string) (position uint64, ok bool) {
	number, ok := strings.CutPrefix(id, h.epoch+"-")
	if !ok {
		return 0, false
	}
	position, err := strconv.ParseUint(number, 10, 64)
	return position, err == nil
}
