package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// forward sends a plain request to its server and the answer back. It says
// whether another request may follow.
func (s *session) forward(ctx context.Context, e *entry, r *request) bool {
	for retried := false; ; retried = true {
		up, bad := s.reach(ctx, r)
		if bad != nil {
			return s.refuse(e, r, bad)
		}
		e.change(func(d *Decision) { d.Allowed, d.Address = true, up.at.String() })
		stale := up.used && !retried
		up.used = true
		up.own.up.Store(0)
		up.own.down.Store(0)
		if r.expects {
			_, _ = io.WriteString(s.client, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		sending := s.send(up, r)
		answer, err := up.answer(r)
		if err != nil && stale && up.own.down.Load() == 0 {
			sending.stop()
			up.drop()
			if sending.left.Load() {
				return false
			}
			continue
		}
		again := false
		switch {
		case err != nil:
			whole := sending.stop()
			again = s.unanswered(e, r, sending, whole, err)
		case answer.StatusCode == http.StatusSwitchingProtocols:
			sending.stop()
			s.switchProtocols(e, up, answer)
		default:
			err = s.deliver(e, r, answer, up)
			whole := sending.stop()
			again = err == nil && whole && !r.close && !answer.untilEnd(r)
		}
		e.change(func(d *Decision) { d.BytesUp, d.BytesDown = up.own.up.Load(), up.own.down.Load() })
		if again && err == nil && !answer.Close {
			s.kept = up
			return true
		}
		up.drop()
		return again
	}
}

// unanswered tells the client that the server gave no answer that can be read.
func (s *session) unanswered(e *entry, r *request, sending *sending, whole bool, err error) bool {
	if sending.left.Load() {
		e.change(func(d *Decision) { d.Reason = "the capability broke the request off" })
		return false
	}
	r.close = r.close || !whole
	what := "closed the connection without an answer"
	var known *refusal
	switch {
	case errors.As(err, &known):
		return s.refuse(e, r, known)
	case errors.Is(err, os.ErrDeadlineExceeded):
		what = "did not answer in time"
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		what = "sent an answer that cannot be read"
	}
	return s.refuse(e, r, refuse(http.StatusBadGateway, "%s %s", r.target, what))
}

// sending is a request on its way.
type sending struct {
	session *session
	up      *upstream
	written chan struct{} // closed when no more of the request is sent
	done    chan struct{}
	whole   atomic.Bool // all of it was sent
	left    atomic.Bool // the client went away or sent nonsense
}

// send writes a request while the answer is awaited, and notices a client that
// goes away: then the connection to the server is closed.
func (s *session) send(up *upstream, r *request) *sending {
	sending := &sending{session: s, up: up, written: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(sending.done)
		readErr, writeErr := s.write(up, r)
		sending.whole.Store(readErr == nil && writeErr == nil)
		close(sending.written)
		if readErr == nil && writeErr == nil {
			_, readErr = s.in.Peek(1)
		}
		// After an error of writing the answer may be there all the same.
		if readErr != nil && !errors.Is(readErr, os.ErrDeadlineExceeded) {
			sending.left.Store(true)
			up.Close()
		}
	}()
	return sending
}

// stop ends the sending and says whether all was sent. A server may answer
// before it read all; what is still on its way then gets a moment. The client
// can be read again afterwards.
func (s *sending) stop() (whole bool) {
	moment := time.NewTimer(50 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-s.written:
	case <-moment.C:
	}
	if whole = s.whole.Load(); !whole {
		s.up.Close()
	}
	s.session.client.bound(time.Unix(1, 0))
	<-s.done
	s.session.client.bound(time.Time{})
	return whole
}

// write sends head and body.
func (s *session) write(up *upstream, r *request) (readErr, writeErr error) {
	if _, err := io.WriteString(up, r.outgoing()); err != nil {
		return nil, err
	}
	if r.length > 0 {
		body := io.LimitedReader{R: s.in, N: r.length}
		if readErr, writeErr = relay(up, &body); readErr == nil && writeErr == nil && body.N > 0 {
			readErr = io.ErrUnexpectedEOF
		}
		return readErr, writeErr
	}
	if r.length < 0 {
		out := &chunkWriter{to: up}
		if readErr, writeErr = relay(out, &chunks{in: s.in}); readErr == nil && writeErr == nil {
			writeErr = out.end()
		}
	}
	return readErr, writeErr
}

// answer is a server's answer to a request.
type answer struct{ *http.Response }

// answer reads the head of the final answer. Interim ones are dropped.
func (u *upstream) answer(r *request) (answer, error) {
	for range 8 {
		u.headLeft = maxHead
		response, err := http.ReadResponse(u.in, &http.Request{Method: r.method}) //nolint:bodyclose // the connection is closed or kept as a whole
		u.headLeft = -1
		if err != nil {
			return answer{}, err
		}
		switch {
		case response.StatusCode == http.StatusSwitchingProtocols && !r.websocket:
			return answer{}, refuse(http.StatusBadGateway, "%s changed to a protocol that was not asked for", r.target)
		case response.StatusCode == http.StatusSwitchingProtocols, response.StatusCode >= 200:
			return answer{response}, nil
		}
	}
	return answer{}, refuse(http.StatusBadGateway, "%s sent no final answer", r.target)
}

// hasBody says whether bytes follow the head.
func (a answer) hasBody(r *request) bool {
	return r.method != http.MethodHead && a.StatusCode != http.StatusNoContent && a.StatusCode != http.StatusNotModified
}

// untilEnd says whether the body can only end with the connection.
func (a answer) untilEnd(r *request) bool {
	return a.hasBody(r) && a.ContentLength < 0 && r.minor == '0'
}

// head returns the head for the client.
func (a answer) head(r *request) string {
	var out strings.Builder
	fmt.Fprintf(&out, "HTTP/1.1 %03d %s\r\n", a.StatusCode, a.phrase())
	for _, value := range a.Header.Values("Connection") {
		for name := range strings.SplitSeq(value, ",") {
			a.Header.Del(strings.TrimSpace(name))
		}
	}
	lengths := a.Header.Values("Content-Length")
	for name := range a.Header {
		if isHopByHop(name) || name == "Content-Length" {
			delete(a.Header, name)
		}
	}
	_ = a.Header.Write(&out)
	switch {
	case !a.hasBody(r):
		if a.StatusCode != http.StatusNoContent && len(lengths) == 1 && strings.Trim(lengths[0], "0123456789") == "" {
			out.WriteString("Content-Length: " + lengths[0] + "\r\n")
		}
	case a.ContentLength >= 0:
		out.WriteString("Content-Length: " + strconv.FormatInt(a.ContentLength, 10) + "\r\n")
	case !a.untilEnd(r):
		out.WriteString("Transfer-Encoding: chunked\r\n")
	}
	if r.close || a.untilEnd(r) {
		out.WriteString("Connection: close\r\n")
	}
	out.WriteString("\r\n")
	return out.String()
}

// phrase is the server's reason phrase, if it can be repeated.
func (a answer) phrase() string {
	_, phrase, _ := strings.Cut(a.Status, " ")
	if !isText(phrase) {
		return http.StatusText(a.StatusCode)
	}
	return phrase
}

// deliver sends an answer to the client as it comes.
func (s *session) deliver(e *entry, r *request, a answer, up *upstream) error {
	e.change(func(d *Decision) { d.Status = a.StatusCode })
	out := flusher{bufio.NewWriter(s.client)}
	if _, err := out.WriteString(a.head(r)); err != nil {
		return err
	}
	if !a.hasBody(r) {
		return out.Flush()
	}
	if up.in.Buffered() == 0 {
		if err := out.Flush(); err != nil {
			return err
		}
	}
	var readErr, writeErr error
	if a.ContentLength >= 0 || a.untilEnd(r) {
		readErr, writeErr = relay(out, a.Body)
	} else {
		chunked := &chunkWriter{to: out}
		if readErr, writeErr = relay(chunked, a.Body); readErr == nil && writeErr == nil {
			writeErr = chunked.end()
		}
	}
	if readErr != nil {
		e.change(func(d *Decision) { d.Reason = fmt.Sprintf("%s broke its answer off", r.target) })
	}
	return errors.Join(readErr, writeErr, out.Flush())
}

// switchProtocols passes a 101 on and then every byte both ways.
func (s *session) switchProtocols(e *entry, up *upstream, a answer) {
	e.change(func(d *Decision) { d.Status = a.StatusCode })
	var out strings.Builder
	out.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
	for name := range a.Header {
		if isHopByHop(name) {
			delete(a.Header, name)
		}
	}
	_ = a.Header.Write(&out)
	out.WriteString("\r\n")
	if _, err := io.WriteString(s.client, out.String()); err == nil {
		_ = s.pipe(up, nil)
	}
}

// flusher lets nothing wait in its buffer.
type flusher struct{ *bufio.Writer }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	return n, errors.Join(err, f.Flush())
}
