package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
// function, that is told of each key that was there before.
func decodeObject(data []byte, seen func(key string)) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	token, err := dec.Token()
	if err != nil {
		return nil, jsonError(err)
	}
	if token != json.Delim('{') {
		return nil, errNotObject
	}
	var o object
	at := map[string]int{}
	for dec.More() {
		m, err := decodeMember(dec)
		if err != nil {
			return nil, err
		}
		if i, ok := at[m.key]; ok {
			o[i].value = m.value
			if seen != nil {
				seen(m.key)
			}
			continue
		}
		at[m.key] = len(o)
		o = append(o, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, jsonError(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is something after the end of the JSON object")
	}
	return o, nil
}

func decodeMember(dec *json.Decoder) (member, error) {
	token, err := dec.Token()
	if err != nil {
		return member{}, jsonError(err)
	}
	key, ok := token.(string)
	if !ok {
		return member{}, fmt.Errorf("a key is not a string: %v", token)
	}
	m := member{key: key}
	if err := dec.Decode(&m.value); err != nil {
		return member{}, jsonError(err)
	}
	return m, nil
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
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(m.key))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
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

// indent is the layout of the files below tools/: two spaces, a final newline.
func indent(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return append(raw, '\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}
