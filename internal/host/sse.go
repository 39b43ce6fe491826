package host

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	heartbeat   = 15 * time.Second
	writeWithin = 30 * time.Second // a client that takes nothing for so long is dropped
)

// stream sends the events of a hub, as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html): those after
// the one that the client has, or first a snapshot when they are not kept.
func stream(w http.ResponseWriter, r *http.Request, h *hub, snapshot func() (at uint64, data []byte)) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	position, known := h.parse(r.Header.Get("Last-Event-ID"))
	for {
		events, changed, ok := h.after(position)
		if !known || !ok {
			at, data := snapshot()
			events, known = []event{{at, "snapshot", data}}, true
		}
		if err := send(w, control, h, events); err != nil {
			return
		}
		if len(events) > 0 {
			position = events[len(events)-1].id
			continue
		}
		if err := wait(r.Context(), w, control, changed); err != nil {
			return
		}
	}
}

// wait waits for more, with a sign of life from time to time.
func wait(ctx context.Context, w http.ResponseWriter, control *http.ResponseController, changed <-chan struct{}) error {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	_ = control.SetWriteDeadline(time.Now().Add(writeWithin)) // the connection may be gone
	if _, err := fmt.Fprint(w, ": heartbeat\n\n"); err != nil {
		return err
	}
	return control.Flush()
}

func send(w http.ResponseWriter, control *http.ResponseController, h *hub, events []event) error {
	_ = control.SetWriteDeadline(time.Now().Add(writeWithin)) // the connection may be gone
	for _, e := range events {
		if _, err := fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", h.eventID(e.id), e.kind, e.data); err != nil {
			return err
		}
	}
	return control.Flush()
}
