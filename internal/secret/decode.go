package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// decode reads a file. The error says what is wrong and never repeats what is
// written there: it may be a secret.
func decode(data []byte) (document, error) {
	var d document
	if !utf8.Valid(data) {
		return document{}, errors.New("it is not UTF-8")
	}
	if err := decodeStrictly(data, &d); err != nil {
		return document{}, err
	}
	if d.Version != formatVersion {
		return document{}, fmt.Errorf("it has format version %d, and this Tendril knows version %d", d.Version, formatVersion)
	}
	for name, value := range d.Secrets {
		if CheckName(name) != nil {
			return document{}, errors.New("it holds something whose name can be no name of a secret")
		}
		if err := checkKept(value); err != nil {
			return document{}, fmt.Errorf("the value of %s cannot be used: %w", name, err)
		}
	}
	for _, list := range []*names{&d.Keychain, &d.Leftover} {
		for _, name := range *list {
			if CheckName(name) != nil {
				return document{}, errors.New("it lists something that can be no name of a secret")
			}
		}
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return d, nil
}

// decodeStrictly reads one JSON document without unknown members, which the next
// write would lose.
func decodeStrictly(data []byte, d *document) error {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	err := in.Decode(d)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("it is damaged at line %d", 1+bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n")))
	case err != nil:
		return errors.New("it is damaged: it ends early, or holds what does not belong there")
	case len(bytes.TrimSpace(data[in.InputOffset():])) > 0:
		return errors.New("it is damaged: something follows its end")
	}
	return nil
}
