package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
)

// The media types of the streams that are read here.
const (
	sseStream = "text/event-stream"
	awsStream = "application/vnd.amazon.eventstream"
)

// errNoFrame is a body that is not framed as an AWS event stream, or whose
// frames are damaged.
var errNoFrame = errors.New("the reply is damaged: it is no valid event stream")

// awsReader reads an AWS event stream: binary frames with checksums. An
// exception becomes an event named "error", whose data is a JSON object with the
// fields "type" and "message".
type awsReader struct {
	src     *countingReader
	decoder *eventstream.Decoder
	payload []byte
	events  int
	whole   int // bytes of the frames so far
}

func newAWSReader(r io.Reader) *awsReader {
	return &awsReader{src: &countingReader{src: bufio.NewReader(r), limit: maxReplyBytes}, decoder: eventstream.NewDecoder()}
}

// opening implements eventReader. A frame that was not recognized has been read
// only in part, so more is read here.
func (r *awsReader) opening() ([]byte, bool) {
	if r.events > 0 {
		return nil, false
	}
	for len(r.src.prefix) < prefixBytes {
		if _, err := r.src.Read(make([]byte, prefixBytes-len(r.src.prefix))); err != nil {
			break
		}
	}
	return r.src.prefix, true
}

// next implements eventReader.
func (r *awsReader) next() (event, error) {
	for {
		message, err := r.decoder.Decode(r.src, r.payload)
		if err != nil {
			return event{}, r.failure()
		}
		r.payload = message.Payload
		r.events++
		r.whole = r.src.total
		if ev, ok := awsEvent(message); ok {
			return ev, nil
		}
	}
}

// failure tells the end of the body and what the body's reader said apart from
// frames that make no sense.
func (r *awsReader) failure() error {
	if r.src.err == io.EOF && r.events > 0 && r.src.total > r.whole {
		return errIncomplete
	}
	if r.src.err != nil {
		return r.src.err
	}
	if _, untouched := r.opening(); untouched && !bytes.ContainsRune(r.src.prefix, 0) {
		return io.EOF // text: an error or a page, and what it is, is said elsewhere
	}
	return errNoFrame
}

// awsEvent translates a frame; ok is false when it is of no kind that is known.
func awsEvent(m eventstream.Message) (event, bool) {
	header := func(name string) string {
		value := m.Headers.Get(name)
		if value == nil {
			return ""
		}
		return value.String()
	}
	switch header(eventstreamapi.MessageTypeHeader) {
	case eventstreamapi.EventMessageType:
		return event{name: header(eventstreamapi.EventTypeHeader), data: m.Payload}, true
	case eventstreamapi.ExceptionMessageType:
		return awsFailure(header(eventstreamapi.ExceptionTypeHeader), exceptionText(m.Payload)), true
	case eventstreamapi.ErrorMessageType:
		return awsFailure(header(eventstreamapi.ErrorCodeHeader), header(eventstreamapi.ErrorMessageHeader)), true
	}
	return event{}, false
}

func awsFailure(kind, message string) event {
	if message == "" {
		message = kind
	}
	data, err := json.Marshal(map[string]string{"type": kind, "message": message})
	if err != nil {
		data = []byte("{}")
	}
	return event{name: "error", data: data}
}

func exceptionText(payload []byte) string {
	if parsed, ok := parseError(payload); ok {
		return parsed.message
	}
	return string(payload)
}

// countingReader bounds a body, keeps its beginning and remembers its error.
type countingReader struct {
	src    io.Reader
	limit  int
	total  int
	prefix []byte
	err    error
}

func (c *countingReader) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.src.Read(p)
	if c.total += n; c.total > c.limit {
		err = errReplyTooLong
	}
	c.prefix = append(c.prefix, p[:min(n, prefixBytes-len(c.prefix))]...)
	c.err = err
	return n, err
}
