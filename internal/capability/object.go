package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// object is a JSON object that keeps the order of its members and the bytes of
// their values. Of a key given twice it holds the last value, like JavaScript.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

var errNotObject = errors.New("not a JSON object")

// decodeObject reads one JSON object and nothing after it. With a seen
// function, that is told of each key that was there before. The values are parts
// of data, which must not change any more.
func decodeObject(data []byte, seen func(key string)) (object, error) {
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	return members(data, seen)
}

// checkJSON says why data is not one JSON value.
func checkJSON(data []byte) error {
	if json.Valid(data) {
		return nil
	}
	var value json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&value); err != nil {
		return jsonError(err)
	}
	return errors.New("there is something after the end of the JSON " + strings.TrimPrefix(strings.TrimPrefix(kindOf(value), "an "), "a "))
}

// jsonError puts a decoder's error in words of ours.
func jsonError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON text ends too early")
	}
	return err
}

// get returns the value of key, or nil. A JSON null counts as not there.
func (o object) get(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key && string(m.value) != "null" {
			return m.value
		}
	}
	return nil
}

// set replaces the value of key where it stands, or appends it; a nil value
// removes the key. It returns the new object and leaves o as it was.
func (o object) set(key string, value json.RawMessage) object {
	out := make(object, 0, len(o)+1)
	found := false
	for _, m := range o {
		if m.key != key {
			out = append(out, m)
			continue
		}
		found = true
		if value != nil {
			out = append(out, member{key, value})
		}
	}
	if !found && value != nil {
		out = append(out, member{key, value})
	}
	return out
}

// MarshalJSON implements [json.Marshaler]. It keeps the bytes of the values.
func (o object) MarshalJSON() ([]byte, error) { return o.encode(), nil }

func (o object) encode() []byte {
	var p printer
	p.object(o)
	return p.out
}

// encode is json.Marshal that leaves <, > and & alone, for values of ours that
// always have a JSON form.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only a RawMessage that is not JSON gets here, and those are checked
		// where they come in.
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
