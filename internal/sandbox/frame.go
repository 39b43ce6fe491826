package sandbox

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
)

// The bootstrap speaks to us in frames among the capability's own output:
//
//	"\x1e" nonce kind payload "\n"
//
// The nonce is new in every run and the capability cannot read it, so that it
// cannot write a frame. The payload is one line of text.
const (
	frameStarted = 'S' // stdout: the capability is about to be imported
	frameValue   = 'V' // stdout: what its default export returned, as JSON, or nothing
	frameError   = 'E' // stderr: what follows is Deno's account of the failure
)

type frame struct {
	kind    byte
	payload []byte
	at      int // where it stood in the text that is left
}

// newNonce returns 32 hexadecimal digits.
func newNonce() string {
	var raw [16]byte
	rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

func frameMarker(nonce string) []byte { return []byte("\x1e" + nonce) }

// splitFrames takes the frames out of what a child wrote. A last frame that
// lacks its line end was cut off and is dropped.
func splitFrames(raw, marker []byte) (text []byte, frames []frame) {
	for {
		before, rest, found := bytes.Cut(raw, marker)
		text = append(text, before...)
		if !found {
			return text, frames
		}
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			return text, frames
		}
		if len(line) > 0 {
			frames = append(frames, frame{kind: line[0], payload: line[1:], at: len(text)})
		}
		raw = after
	}
}

// find returns the first frame of a kind, or nil.
func find(frames []frame, kind byte) *frame {
	for i := range frames {
		if frames[i].kind == kind {
			return &frames[i]
		}
	}
	return nil
}
