package model

import (
	"fmt"
	"io"
	"time"
)

// stallTime is how long a reply may be silent between two bytes; comments and
// pings count as bytes. It is generous, because servers think in silence.
const stallTime = 2 * time.Minute

// firstByte is how many stall times the first byte may take: a local server may
// announce its reply, and only then read a long prompt.
const firstByte = 5

// silence returns the bound on silence of this endpoint.
func (e *endpoint) silence() time.Duration {
	if e.stall > 0 {
		return e.stall
	}
	return stallTime
}

// silentError says that a body was silent for too long.
type silentError struct{ after time.Duration }

func (e *silentError) Error() string { return fmt.Sprintf("silent for %v", e.after) }

// watchedBody is a body whose reads end when it is silent for too long.
type watchedBody struct {
	body   io.Reader
	stall  time.Duration
	factor time.Duration // firstByte until something came, then 1
	cancel func(error)
}

// watch calls cancel, which must end the reads of body, when a read of it takes
// longer than stall, or for the first byte firstByte times as long. That read
// returns a *silentError.
func watch(body io.Reader, stall time.Duration, cancel func(error)) io.Reader {
	return &watchedBody{body, stall, firstByte, cancel}
}

func (w *watchedBody) Read(p []byte) (int, error) {
	silent := &silentError{w.stall * w.factor}
	timer := time.AfterFunc(silent.after, func() { w.cancel(silent) })
	n, err := w.body.Read(p)
	expired := !timer.Stop()
	if n > 0 {
		w.factor = 1
	}
	if err != nil && err != io.EOF && expired {
		return n, silent
	}
	return n, err
}
