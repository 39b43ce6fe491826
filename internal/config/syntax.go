package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// checkSyntax reports why data is no JSON object: what is wrong, where, and
// what to do about it.
func checkSyntax(data []byte) error {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return errors.New("the file is UTF-16; save it as UTF-8")
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New("the file is empty; delete it to start from the defaults, or write {} into it")
	case bytes.IndexByte(data, 0) >= 0:
		return errAt(data, bytes.IndexByte(data, 0), "there is a NUL byte; the file was damaged, as by a crash; restore it, or delete it to start from the defaults")
	case !utf8.Valid(data):
		return errAt(data, invalidUTF8(data), "there are bytes that are not UTF-8; save the file as UTF-8")
	}
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return describe(data, syntax)
	}
	if err != nil {
		return err
	}
	if raw[0] != '{' {
		return fmt.Errorf("the file holds %s; it must hold an object: {…}", kindOf(raw))
	}
	return nil
}

// describe adds the place of a syntax error, and what commonly leads to it.
func describe(data []byte, syntax *json.SyntaxError) error {
	at := min(max(int(syntax.Offset)-1, 0), len(data)-1)
	rest, before := data[at:], bytes.TrimRight(data[:at], " \t\r\n")
	switch {
	case len(bytes.TrimSpace(data[min(int(syntax.Offset), len(data)):])) == 0 && syntax.Error() == "unexpected end of JSON input":
		return errAt(data, len(data), "the file ends in the middle; it was cut off; complete it, or delete it to start from the defaults")
	case rest[0] == '/' || rest[0] == '#':
		return errAt(data, at, "JSON has no comments; remove this one")
	case (rest[0] == '}' || rest[0] == ']') && bytes.HasSuffix(before, []byte(",")):
		return errAt(data, at, "JSON has no comma before a closing bracket; remove it")
	}
	return errAt(data, at, syntax.Error()+"; mend it there, or move the file away to start from the defaults")
}

// errAt places a complaint. Lines and columns count from 1, columns in
// characters.
func errAt(data []byte, offset int, complaint string) error {
	before := data[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("line %d, column %d: %s", line, column, complaint)
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return 0
}

// kindOf names the kind of a JSON value for a person.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
