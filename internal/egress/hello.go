package egress

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

const (
	maxHello = 64 << 10 // bytes, record headers included

	recordHandshake   = 22
	maxRecord         = 16 << 10
	messageHello      = 1
	extensionName     = 0
	extensionECH      = 0xfe0d
	extensionECHOuter = 0xfd00
)

var (
	errNotTLS       = errors.New("what it sent is not TLS")
	errOtherMessage = errors.New("its TLS does not begin with a ClientHello")
	errHello        = errors.New("its TLS ClientHello is malformed")
	errHelloSize    = errors.New("its TLS ClientHello is longer than 64 KiB")
)

// hello is what a ClientHello says about whom it is for.
type hello struct {
	name  string // of the server_name extension
	named bool   // there is one
	ech   bool   // an encrypted hello with another name may be inside
}

// readHello reads the records of exactly one ClientHello, however they are cut.
// It returns their bytes to be passed on, and the message. With errOtherMessage
// the bytes are those of the records that were read.
func readHello(in *bufio.Reader) (raw, message []byte, err error) {
	for {
		var header [5]byte
		if _, err := io.ReadFull(in, header[:1]); err != nil {
			return nil, nil, unexpected(err)
		}
		if header[0] != recordHandshake {
			return nil, nil, errNotTLS
		}
		if _, err := io.ReadFull(in, header[1:]); err != nil {
			return nil, nil, unexpected(err)
		}
		size := int(binary.BigEndian.Uint16(header[3:]))
		if header[1] != 3 || header[2] > 4 || size == 0 || size > maxRecord {
			return nil, nil, errNotTLS
		}
		if len(raw)+len(header)+size > maxHello {
			return nil, nil, errHelloSize
		}
		raw = append(raw, header[:]...)
		at := len(raw)
		raw = append(raw, make([]byte, size)...)
		if _, err := io.ReadFull(in, raw[at:]); err != nil {
			return nil, nil, unexpected(err)
		}
		message = append(message, raw[at:]...)
		done, err := wholeHello(message)
		if err != nil || done {
			return raw, message, err
		}
	}
}

// wholeHello says whether the bytes so far are one whole ClientHello. The
// version in it is looked at as well: of an encrypted message any byte may come
// first.
func wholeHello(message []byte) (bool, error) {
	n := len(message)
	if message[0] != messageHello || n > 1 && message[1] > 2 || n > 4 && message[4] != 3 {
		return false, errOtherMessage
	}
	if n < 5 {
		return false, nil
	}
	size := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
	if size > maxHello {
		return false, errHelloSize
	}
	if n > 4+size { // something rides along in the same record
		return false, errHello
	}
	return n == 4+size, nil
}

// parseHello reads a whole ClientHello message. What is not exactly of the
// form of RFC 8446, or has an extension twice, is an error.
func parseHello(message []byte) (hello, error) {
	var h hello
	if len(message) < 4 || message[0] != messageHello {
		return h, errHello
	}
	rest := wire(message[4:])
	ok := rest.skip(2+32) && // version, random
		rest.skipVector(1, 0, 32) && // session id
		rest.skipVector(2, 2, 1<<16) && // cipher suites
		rest.skipVector(1, 1, 255) // compression methods
	if !ok {
		return h, errHello
	}
	if len(rest) == 0 { // no extensions
		return h, nil
	}
	extensions, ok := rest.vector(2)
	if !ok || len(rest) != 0 {
		return h, errHello
	}
	seen := map[uint16]bool{}
	for len(extensions) > 0 {
		kind, ok := extensions.number(2)
		if !ok || seen[uint16(kind)] {
			return h, errHello
		}
		seen[uint16(kind)] = true
		data, ok := extensions.vector(2)
		if !ok {
			return h, errHello
		}
		switch kind {
		case extensionECH, extensionECHOuter:
			h.ech = true
		case extensionName:
			if h.name, ok = data.serverName(); !ok {
				return h, errHello
			}
			h.named = true
		}
	}
	return h, nil
}

// wire is what is left to read of a TLS message.
type wire []byte

func (w *wire) skip(n int) bool {
	if len(*w) < n {
		return false
	}
	*w = (*w)[n:]
	return true
}

// number reads a big-endian number of so many bytes.
func (w *wire) number(size int) (int, bool) {
	if len(*w) < size {
		return 0, false
	}
	n := 0
	for _, b := range (*w)[:size] {
		n = n<<8 | int(b)
	}
	return n, w.skip(size)
}

// vector reads bytes that have their length, of so many bytes, before them.
func (w *wire) vector(size int) (wire, bool) {
	n, ok := w.number(size)
	if !ok || len(*w) < n {
		return nil, false
	}
	data := (*w)[:n]
	return data, w.skip(n)
}

func (w *wire) skipVector(size, least, most int) bool {
	data, ok := w.vector(size)
	return ok && len(data) >= least && len(data) <= most
}

// serverName reads a server_name extension with exactly one host name.
func (w wire) serverName() (string, bool) {
	list, ok := w.vector(2)
	if !ok || len(w) != 0 {
		return "", false
	}
	kind, ok := list.number(1)
	if !ok || kind != 0 {
		return "", false
	}
	name, ok := list.vector(2)
	return string(name), ok && len(list) == 0 && len(name) > 0
}
