package testkit

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Script is a list of replies for a [Provider].
type Script struct {
	Steps      []Reply
	RepeatLast bool
}

// Answer returns the reply for r by its number. A request after the last step
// gets that step again with RepeatLast, else an empty 500.
func (s Script) Answer(r Request) Reply {
	switch {
	case r.N < len(s.Steps):
		return s.Steps[r.N]
	case s.RepeatLast && len(s.Steps) > 0:
		return s.Steps[len(s.Steps)-1]
	}
	return Reply{Status: http.StatusInternalServerError}
}

// LoadScript reads a script file:
//
//	{"steps": [{"body": "../sse/x.sse", "status": 200, "headers": {}, "split": "all|lines|bytes|<n>",
//	            "gap_ms": 0, "delay_ms": 0, "end": "close|hang|reset"}], "repeat_last": true}
//
// A body is a file as [LoadReply] reads it, relative to the script.
func LoadScript(path string) (Script, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Script{}, fmt.Errorf("read the script: %w", err)
	}
	var file struct {
		Steps      []step `json:"steps"`
		RepeatLast bool   `json:"repeat_last"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return Script{}, fmt.Errorf("read the script %s: %w", path, err)
	}
	script := Script{RepeatLast: file.RepeatLast}
	for _, s := range file.Steps {
		reply, err := s.reply(filepath.Dir(path))
		if err != nil {
			return Script{}, err
		}
		script.Steps = append(script.Steps, reply)
	}
	return script, nil
}

type step struct {
	Body    string            `json:"body"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Split   any               `json:"split"` // a word or a number
	GapMS   int               `json:"gap_ms"`
	DelayMS int               `json:"delay_ms"`
	End     string            `json:"end"`
}

func (s step) reply(dir string) (Reply, error) {
	var reply Reply
	if s.Body != "" {
		loaded, err := LoadReply(filepath.Join(dir, filepath.FromSlash(s.Body)))
		if err != nil {
			return Reply{}, err
		}
		reply = loaded
	}
	for name, value := range s.Headers {
		if reply.Headers == nil {
			reply.Headers = map[string]string{}
		}
		reply.Headers[http.CanonicalHeaderKey(name)] = value
	}
	if s.Split != nil {
		reply.Split = fmt.Sprint(s.Split)
	}
	reply.Status = s.Status
	reply.Gap = time.Duration(s.GapMS) * time.Millisecond
	reply.Delay = time.Duration(s.DelayMS) * time.Millisecond
	reply.End = s.End
	return reply, nil
}

// LoadReply reads a body with the content type of its extension. A
// *.bedrock.json file lists [event type, payload] or [exception type, payload,
// "exception"] and becomes an AWS event stream.
func LoadReply(path string) (Reply, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Reply{}, fmt.Errorf("read a reply: %w", err)
	}
	contentType := "application/octet-stream"
	switch {
	case strings.HasSuffix(path, ".bedrock.json"):
		contentType = "application/vnd.amazon.eventstream"
		if raw, err = awsEventStream(raw); err != nil {
			return Reply{}, fmt.Errorf("read the reply %s: %w", path, err)
		}
	case strings.HasSuffix(path, ".sse"):
		contentType = "text/event-stream"
	case strings.HasSuffix(path, ".json"):
		contentType = "application/json"
	case strings.HasSuffix(path, ".html"):
		contentType = "text/html"
	}
	return Reply{Body: raw, Headers: map[string]string{"Content-Type": contentType}}, nil
}

// Case loads the reply "sse/name" of the handed failure cases below dir, which
// is the path to testdata/cases.
func Case(tb testing.TB, dir, name string) Reply {
	tb.Helper()
	reply, err := LoadReply(filepath.Join(dir, "sse", name))
	if err != nil {
		tb.Fatal(err)
	}
	return reply
}

// CaseScript loads the script "scripts/name" below dir, which is the path to
// testdata/cases.
func CaseScript(tb testing.TB, dir, name string) Script {
	tb.Helper()
	script, err := LoadScript(filepath.Join(dir, "scripts", name))
	if err != nil {
		tb.Fatal(err)
	}
	return script
}

func awsEventStream(list []byte) ([]byte, error) {
	var messages [][]json.RawMessage
	if err := json.Unmarshal(list, &messages); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, m := range messages {
		if len(m) < 2 {
			return nil, fmt.Errorf("an event needs a type and a payload")
		}
		var name string
		if err := json.Unmarshal(m[0], &name); err != nil {
			return nil, err
		}
		kind := "event"
		if len(m) > 2 {
			kind = "exception"
		}
		out.Write(awsMessage(kind, name, m[1]))
	}
	return out.Bytes(), nil
}

// awsMessage is one message of an AWS event stream.
func awsMessage(kind, name string, payload []byte) []byte {
	var headers bytes.Buffer
	for _, h := range [][2]string{{":" + kind + "-type", name}, {":content-type", "application/json"}, {":message-type", kind}} {
		headers.WriteByte(byte(len(h[0])))
		headers.WriteString(h[0])
		headers.WriteByte(7) // a string
		headers.Write(binary.BigEndian.AppendUint16(nil, uint16(len(h[1]))))
		headers.WriteString(h[1])
	}
	return awsFrame(headers.Bytes(), payload)
}

// awsFrame frames one message: lengths, headers and payload, each part with its
// CRC.
func awsFrame(headers, payload []byte) []byte {
	msg := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	msg = binary.BigEndian.AppendUint32(msg, uint32(len(headers)))
	msg = binary.BigEndian.AppendUint32(msg, crc32.ChecksumIEEE(msg))
	msg = append(append(msg, headers...), payload...)
	return binary.BigEndian.AppendUint32(msg, crc32.ChecksumIEEE(msg))
}
