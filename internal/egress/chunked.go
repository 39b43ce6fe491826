package egress

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// maxLine bounds the line before a chunk, in bytes.
const maxLine = 4 << 10

var errChunk = errors.New("the chunks of the request are malformed")

// chunks reads a chunked body strictly: hexadecimal sizes of at most 15 digits,
// lines that end in CR LF. Extensions and trailers are read and dropped.
type chunks struct {
	in    *bufio.Reader
	left  int64 // of the chunk that is being read
	begun bool
	ended bool
}

func (c *chunks) Read(b []byte) (int, error) {
	if c.left == 0 && !c.ended {
		if err := c.next(); err != nil {
			return 0, unexpected(err)
		}
	}
	if c.ended {
		return 0, io.EOF
	}
	n, err := c.in.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, unexpected(err)
}

// next goes to the following chunk, or past the trailers after the last one.
func (c *chunks) next() error {
	if c.begun {
		if line, err := c.line(); err != nil || line != "" {
			return errors.Join(err, errChunk)
		}
	}
	c.begun = true
	line, err := c.line()
	if err != nil {
		return err
	}
	size, _, _ := strings.Cut(line, ";")
	size = strings.TrimRight(size, " \t")
	n, err := strconv.ParseUint(size, 16, 60)
	if err != nil || len(size) > 15 || strings.ContainsAny(size, "_+") || !isText(line) {
		return errChunk
	}
	c.left = int64(n)
	if n > 0 {
		return nil
	}
	for total := 0; ; {
		line, err := c.line()
		if err != nil {
			return err
		}
		if line == "" {
			c.ended = true
			return nil
		}
		if total += len(line); total > maxHead {
			return errChunk
		}
	}
}

// line reads a line without its CR LF.
func (c *chunks) line() (string, error) {
	raw, err := c.in.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	line, ok := strings.CutSuffix(string(raw), "\r\n")
	if !ok || len(raw) > maxLine || strings.ContainsAny(line, "\r") {
		return "", errChunk
	}
	return line, nil
}

// unexpected makes an end in the middle an error.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// chunkWriter writes each piece as one chunk.
type chunkWriter struct {
	to  io.Writer
	buf []byte
}

func (c *chunkWriter) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	c.buf = strconv.AppendInt(c.buf[:0], int64(len(b)), 16)
	c.buf = append(c.buf, "\r\n"...)
	c.buf = append(c.buf, b...)
	c.buf = append(c.buf, "\r\n"...)
	if _, err := c.to.Write(c.buf); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (c *chunkWriter) end() error {
	_, err := io.WriteString(c.to, "0\r\n\r\n")
	return err
}
