package model

import (
	"context"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
)

// drainTime is how long a finished reply's connection may take to end properly,
// so that it can be used again.
const drainTime = 50 * time.Millisecond

// progress is how far a reply has come.
type progress int

const (
	replyOpen   progress = iota // more must come
	replyWhole                  // the provider said that it is complete; figures may follow
	replyClosed                 // nothing follows
)

// assembler turns the events of one reply into parts. Calls come only from
// finish, which is called once, after progress has reached replyWhole.
type assembler interface {
	// add takes one event. Its parts count also when it returns an error, which
	// is a *agent.ModelError.
	add(event) ([]agent.Part, error)
	progress() progress
	finish() []agent.Part
}

// stream sends a request and yields its reply by the contract of [agent.Model].
func (e *endpoint) stream(ctx context.Context, send func(context.Context) (*http.Response, error), reply assembler) iter.Seq2[agent.Part, error] {
	return func(yield func(agent.Part, error) bool) {
		inner, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		resp, err := e.open(inner, send)
		if err != nil {
			yield(agent.Part{}, orContextError(ctx, err))
			return
		}
		defer resp.Body.Close()
		body := watch(resp.Body, e.silence(), cancel)
		events := e.events(body)
		if more, err := e.read(events, reply, yield); err != nil {
			yield(agent.Part{}, orContextError(ctx, e.cut(resp, events, err)))
		} else if more {
			drain(resp.Body, func() { cancel(nil) })
		}
	}
}

// events reads the body as this endpoint's kind of stream.
func (e *endpoint) events(body io.Reader) eventReader {
	if e.streamType == awsStream {
		return newAWSReader(body)
	}
	return newSSEReader(body)
}

// orContextError is ctx's error when ctx has ended, else err.
func orContextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// open sends the request and returns an answer that looks like a stream, or a
// classified error.
func (e *endpoint) open(ctx context.Context, send func(context.Context) (*http.Response, error)) (*http.Response, error) {
	if u, err := url.Parse(e.baseURL); e.baseURL != "" && (err != nil || u.Host == "") {
		return nil, e.errorf(agent.ErrRequest, "it looks like https://host/path", "the base URL is not valid")
	}
	resp, err := send(ctx)
	var failure *agent.ModelError
	switch {
	case errors.As(err, &failure):
		return nil, failure
	case err != nil:
		return nil, e.unreachableError(err)
	case resp == nil:
		return nil, e.broken("the server sent no answer")
	}
	return resp, nil
}

// errIncomplete is an event that makes no sense because the stream ended in it.
var errIncomplete = errors.New("the reply ended in an event")

// read yields the parts of a reply. It returns false without an error when the
// consumer wants no more. Errors are *[agent.ModelError], or what the reader
// said.
func (e *endpoint) read(events eventReader, reply assembler, yield func(agent.Part, error) bool) (bool, error) {
	for reply.progress() != replyClosed {
		ev, err := events.next()
		if err != nil {
			if reply.progress() == replyWhole {
				break
			}
			return false, err
		}
		parts, err := reply.add(ev)
		if !yieldAll(parts, yield) {
			return false, nil
		}
		var failure *agent.ModelError
		if errors.As(err, &failure) && failure.Kind == agent.ErrMalformed && ev.open {
			return false, errIncomplete
		}
		if err != nil {
			return false, err
		}
	}
	return yieldAll(reply.finish(), yield), nil
}

func yieldAll(parts []agent.Part, yield func(agent.Part, error) bool) bool {
	for _, p := range parts {
		if !yield(p, nil) {
			return false
		}
	}
	return true
}

// cut describes why a reply ended before it was whole. When it held no event at
// all it may be an error or a web page under a status of success.
func (e *endpoint) cut(resp *http.Response, events eventReader, err error) error {
	var failure *agent.ModelError
	var silent *silentError
	if errors.As(err, &failure) {
		return failure
	}
	if errors.As(err, &silent) {
		return e.lost("the server stopped in the middle of the reply: it was silent for %v", silent.after)
	}
	if errors.Is(err, errReplyTooLong) || errors.Is(err, errNoFrame) {
		return e.broken("%v", err)
	}
	if err != io.EOF && err != errIncomplete {
		return e.lost("the connection broke before the reply was complete")
	}
	prefix, untouched := events.opening()
	contentType := resp.Header.Get("Content-Type")
	if untouched && len(prefix) > 0 {
		if body := readErrorBody(contentType, prefix); body.page {
			return e.page(resp.StatusCode)
		}
		if _, ok := parseError(prefix); ok {
			return e.inStream(prefix)
		}
		if media, _, _ := mime.ParseMediaType(contentType); media != e.streamType {
			return e.broken("the server answered without a stream")
		}
	}
	if err == io.EOF && !untouched { // the server itself ended it, as if that were all: asking again may cost as much again
		return e.broken("the reply ended before it was complete")
	}
	return e.lost("the reply ended before it was complete")
}

// drain reads the end of a finished reply, so that its connection can serve the
// next request. It gives up soon: a server may keep a finished stream open.
func drain(body io.Reader, cancel func()) {
	timer := time.AfterFunc(drainTime, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, maxErrorBody) // its outcome does not matter
}

// intercept is a middleware of both SDKs: it classifies an answer that is no
// stream before the SDK reads it, without bound, into an error of its own.
func (e *endpoint) intercept(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	resp, err := next(req)
	if err != nil {
		return nil, err
	}
	if failure := e.respond(resp); failure != nil {
		return nil, failure
	}
	return resp, nil
}
