package egress

import (
	"bufio"
	"errors"
	"strings"
)

const (
	maxHead   = 64 << 10 // bytes of a request's or a response's head
	maxTarget = 16 << 10 // bytes of a request's URL
	maxMethod = 32       // bytes
)

// errHead is a head that is not exactly HTTP/1: whatever two readers might
// read differently is refused.
var (
	errHeadSize = errors.New("the head of the request is longer than 64 KiB")
	errHeadLine = errors.New("a line of the request's head does not end in CR LF")
	errHeadForm = errors.New("the request line is not that of HTTP/1.1")
	errField    = errors.New("a header of the request is malformed")
	errURLSize  = errors.New("the URL is longer than 16 KiB")
)

// field is one header as it was spelled.
type field struct{ name, value string }

// head is the head of a request, checked for form alone.
type head struct {
	method, target string
	minor          byte // of the version, '0' or '1'
	fields         []field
}

// readHead reads up to the empty line and returns the bytes.
func readHead(in *bufio.Reader) (string, error) {
	var raw []byte
	for start := 0; ; {
		part, err := in.ReadSlice('\n')
		raw = append(raw, part...)
		if len(raw) > maxHead {
			return "", errHeadSize
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return "", err
		}
		line := raw[start:]
		if len(line) < 2 || line[len(line)-2] != '\r' {
			return "", errHeadLine
		}
		if len(line) == 2 {
			return string(raw), nil
		}
		start = len(raw)
	}
}

// parseHead takes the bytes of readHead apart.
func parseHead(raw string) (head, error) {
	lines := strings.Split(strings.TrimSuffix(raw, "\r\n\r\n"), "\r\n")
	parts := strings.Split(lines[0], " ")
	if len(parts) != 3 || !isToken(parts[0]) || len(parts[0]) > maxMethod || parts[1] == "" || !isVisible(parts[1]) {
		return head{}, errHeadForm
	}
	if parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0" {
		return head{}, errHeadForm
	}
	if len(parts[1]) > maxTarget {
		return head{}, errURLSize
	}
	h := head{method: parts[0], target: parts[1], minor: parts[2][7]}
	for _, line := range lines[1:] {
		name, value, found := strings.Cut(line, ":")
		if !found || !isToken(name) || !isText(value) {
			return head{}, errField
		}
		h.fields = append(h.fields, field{name, strings.Trim(value, " \t")})
	}
	return h, nil
}

// all returns the values of a header.
func (h head) all(name string) []string {
	var values []string
	for _, f := range h.fields {
		if strings.EqualFold(f.name, name) {
			values = append(values, f.value)
		}
	}
	return values
}

// lists says whether a header that is a list holds a word.
func (h head) lists(name, word string) bool {
	for _, value := range h.all(name) {
		for item := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.Trim(item, " \t"), word) {
				return true
			}
		}
	}
	return false
}

func isToken(text string) bool {
	for i := range len(text) {
		if !isTokenByte(text[i]) {
			return false
		}
	}
	return text != ""
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// isVisible allows ASCII without blanks and control characters.
func isVisible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// isText allows what may stand in the value of a header.
func isText(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' && text[i] != '\t' || text[i] == 0x7f {
			return false
		}
	}
	return true
}
