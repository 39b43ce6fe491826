package jsonrpc

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// queued is how many bytes may wait for a slow reader before those who send
	// wait too. One line may be longer.
	queued = 1 << 20
	// queuedAnswers is the same for what the reading goroutine answers itself:
	// more, so that a turn which waits for a slow reader does not keep us from
	// reading its cancellation.
	queuedAnswers = 4 << 20
)

// ErrClosed means that the connection is over.
var ErrClosed = errors.New("the connection is closed")

// writer sends lines from a goroutine of its own ([writer.run]).
type writer struct {
	out io.Writer

	mu     sync.Mutex
	change sync.Cond // of what is below
	lines  [][]byte
	size   int // bytes of lines and of what is being written
	closed bool
	err    error // of a write

	done chan struct{} // run has returned
}

func newWriter(out io.Writer) *writer {
	w := &writer{out: out, done: make(chan struct{})}
	w.change.L = &w.mu
	return w
}

// put queues a line. It waits while more than limit bytes are queued. An error
// means that the connection is over, and lasts.
func (w *writer) put(line []byte, limit int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && !w.closed && w.size > 0 && w.size+len(line) > limit {
		w.change.Wait()
	}
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return ErrClosed
	}
	w.lines = append(w.lines, line)
	w.size += len(line)
	w.change.Broadcast()
	return nil
}

// sync waits until the queue is written.
func (w *writer) sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && w.size > 0 {
		w.change.Wait()
	}
	return w.err
}

// run writes until the writer is closed and its queue empty, or a write fails.
func (w *writer) run() error {
	defer close(w.done)
	buffered := bufio.NewWriterSize(w.out, 64<<10)
	for {
		batch := w.take()
		if batch == nil {
			return nil
		}
		size := 0
		var err error
		for _, line := range batch {
			size += len(line)
			if _, err = buffered.Write(line); err != nil {
				break
			}
		}
		if err == nil {
			err = buffered.Flush()
		}
		w.mu.Lock()
		w.size -= size
		w.err = err
		w.change.Broadcast()
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// take waits for lines; nil means that there will be none.
func (w *writer) take() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.lines) == 0 && !w.closed {
		w.change.Wait()
	}
	batch := w.lines
	w.lines = nil
	return batch
}

// close ends the queue and gives what is in it a while to be read.
func (w *writer) close(within time.Duration) {
	w.mu.Lock()
	w.closed = true
	w.change.Broadcast()
	w.mu.Unlock()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	}
}
