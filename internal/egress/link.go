package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// link is a connection that is given up when nothing moves on it or on its
// counterpart for too long. It counts what goes through.
type link struct {
	net.Conn
	idle   time.Duration
	active *atomic.Int64 // nanoseconds of the last byte on either side
	total  *meter        // of the proxy; nil on the side of the capability
	own    meter

	mu    sync.Mutex
	until time.Time // nothing is read after this; zero: no such bound
}

func newLink(conn net.Conn, idle time.Duration, active *atomic.Int64, total *meter) *link {
	active.Store(time.Now().UnixNano())
	return &link{Conn: conn, idle: idle, active: active, total: total}
}

// bound sets a time after which every read fails, also one that is waiting
// now. The zero time takes it away.
func (l *link) bound(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = t
	if !t.IsZero() {
		_ = l.SetReadDeadline(t)
	}
}

// arm sets the deadline of the next read and returns it.
func (l *link) arm() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	deadline := time.Unix(0, l.active.Load()).Add(l.idle)
	if !l.until.IsZero() && l.until.Before(deadline) {
		deadline = l.until
	}
	_ = l.SetReadDeadline(deadline)
	return deadline
}

func (l *link) Read(b []byte) (int, error) {
	for {
		armed := l.arm()
		n, err := l.Conn.Read(b)
		if n > 0 {
			l.active.Store(time.Now().UnixNano())
			l.own.down.Add(int64(n))
			if l.total != nil {
				l.total.down.Add(int64(n))
			}
		}
		// The other side moved meanwhile, or the bound was changed.
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && l.arm().After(armed) {
			continue
		}
		return n, err
	}
}

func (l *link) Write(b []byte) (int, error) {
	_ = l.SetWriteDeadline(time.Now().Add(l.idle))
	n, err := l.Conn.Write(b)
	l.active.Store(time.Now().UnixNano())
	l.own.up.Add(int64(n))
	if l.total != nil {
		l.total.up.Add(int64(n))
	}
	return n, err
}

// closeWrite tells the other end that no more comes.
func (l *link) closeWrite() {
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = l.Close()
}

// linger closes a connection so that what was written last arrives: a close
// with unread bytes would reset it.
func (l *link) linger() {
	l.closeWrite()
	l.bound(time.Now().Add(time.Second))
	_, _ = io.CopyN(io.Discard, l, 1<<20)
	_ = l.Close()
}

// relay copies until src ends, as it comes. The end of src is no error.
func relay(dst io.Writer, src io.Reader) (readErr, writeErr error) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := src.Read(buffer)
		if n > 0 {
			if _, err := dst.Write(buffer[:n]); err != nil {
				return nil, err
			}
		}
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return err, nil
		}
	}
}

// oneWay relays from one link to the other and passes the end on. An error
// closes both.
func oneWay(dst, src *link, from io.Reader) {
	readErr, writeErr := relay(dst, from)
	if readErr != nil || writeErr != nil {
		dst.Close()
		src.Close()
		return
	}
	dst.closeWrite()
}
