package host

import (
	"fmt"
	"strings"
	"testing"
)

func TestHub_AfterReturnsEachEventOnce(t *testing.T) {
	h := newHub()
	position := h.position()
	for range 3 {
		for i := range 5 {
			h.publish("n", i)
		}
		events, _, ok := h.after(position)
		if !ok || len(events) != 5 || events[0].id != position+1 {
			t.Fatalf("%v %v", events, ok)
		}
		position = events[4].id
	}
	if events, _, ok := h.after(position); !ok || len(events) != 0 {
		t.Errorf("%v %v", events, ok)
	}
	if _, _, ok := h.after(position + 1); ok {
		t.Error("a position that is yet to come is known")
	}
}

func TestHub_ForgetsTheOldest(t *testing.T) {
	h := newHub()
	for i := range keepEvents + 10 {
		h.publish("n", i)
	}
	if _, _, ok := h.after(9); ok {
		t.Error("what is gone is known")
	}
	if events, _, ok := h.after(10); !ok || len(events) != keepEvents {
		t.Errorf("%d %v", len(events), ok)
	}
	h.publish("big", strings.Repeat("x", keepBytes))
	if events, _, ok := h.after(h.position() - 1); !ok || len(events) != 1 {
		t.Errorf("the newest is gone: %d %v", len(events), ok)
	}
	if _, _, ok := h.after(h.position() - 2); ok {
		t.Error("more bytes are kept than allowed")
	}
}

func TestHub_ParseKnowsItsOwnIDs(t *testing.T) {
	h, other := newHub(), newHub()
	if n, ok := h.parse(h.eventID(7)); !ok || n != 7 {
		t.Error(n, ok)
	}
	for _, id := range []string{"", "7", other.eventID(7), h.epoch, h.epoch + "-", h.epoch + "--7", h.epoch + "-7x", h.epoch + "-99999999999999999999", h.epoch + "- 7"} {
		if n, ok := h.parse(id); ok {
			t.Errorf("%q is %d", id, n)
		}
	}
}

func FuzzHub_Parse(f *testing.F) {
	h := newHub()
	f.Add(h.eventID(1))
	f.Add("x-1")
	f.Fuzz(func(t *testing.T, id string) {
		if n, ok := h.parse(id); ok && strings.TrimLeft(strings.TrimPrefix(id, h.epoch+"-"), "0") != strings.TrimLeft(fmt.Sprint(n), "0") {
			t.Errorf("%q is %d", id, n)
		}
	})
}
