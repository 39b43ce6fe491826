package secret

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxValueBytes is the length of the longest value.
const MaxValueBytes = 64 << 10

var namePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// CheckName reports why name can be no name of a secret. The error matches
// [ErrInvalid] and does not repeat name: it may be a value by mistake.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return invalid("this can be no name of a secret; a name has capital letters, digits and _, begins with a letter and has at most 64 characters, as in ANTHROPIC_API_KEY")
	}
	return nil
}

// CheckValue reports why value can be no new secret. The error matches
// [ErrInvalid].
func CheckValue(value string) error {
	if err := checkKept(value); err != nil {
		return err
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return invalid("the value holds a line break or another control character, which no header of a request can carry; check what was copied, or encode it first, as with base64")
	}
	return nil
}

// checkKept reports why value can be no secret that was kept before.
func checkKept(value string) error {
	switch {
	case strings.TrimSpace(value) == "":
		return invalid("the value is blank; to forget a secret: tendril secret rm NAME")
	case len(value) > MaxValueBytes:
		return invalid("the value is longer than %d KiB", MaxValueBytes>>10)
	case strings.ContainsRune(value, 0):
		return invalid("the value holds a NUL, which no environment can carry")
	case !utf8.ValidString(value):
		return invalid("the value is no text (it is not UTF-8); encode it first, as with base64")
	}
	return nil
}

// invalidError matches ErrInvalid.
type invalidError struct{ reason string }

func invalid(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

func (e *invalidError) Error() string        { return e.reason }
func (e *invalidError) Is(target error) bool { return target == ErrInvalid }
