package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unicode/utf8"
)

// MaxText is the size in bytes of the largest text that is read and written.
const MaxText = 1 << 20

// File is a file as an editor shows it. Text is all of the file, byte for byte,
// or nothing: then Binary or TooLarge says so and Version is "".
type File struct {
	Path     string
	Size     int64 // in bytes
	Modified time.Time
	Version  string // names the content; see [Workspace.WriteText]
	Text     string // UTF-8 without NUL; a byte order mark and CRs are in it
	Binary   bool
	TooLarge bool   // more than [MaxText]
	ReadOnly string // why it cannot be written here, or ""
}

// ReadText reads a file; a link is followed inside of the workspace. An error
// matches [ErrPath] (also when the path leads to no regular file, which is never
// opened), [fs.ErrNotExist] or what the system says.
func (w *Workspace) ReadText(path string) (File, error) {
	p, err := w.find(path)
	if err != nil {
		return File{}, err
	}
	defer p.close()
	file, _, err := p.read(os.O_RDONLY)
	return file, err
}

// read reads the file that has the name now. It returns what was opened, too.
func (p *place) read(flag int) (File, fs.FileInfo, error) {
	if p.name == "" {
		return File{}, nil, p.refuse("is a folder and no file")
	}
	info, err := p.last().Lstat(p.name)
	if err != nil {
		return File{}, nil, p.failed(err)
	}
	if !info.Mode().IsRegular() { // to open a device can do something, a pipe waits
		return File{}, nil, p.refuse("is " + kindName(info.Mode()) + " and no file")
	}
	f, err := p.last().OpenFile(p.name, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, nil, p.failed(err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return File{}, nil, p.failed(err)
	}
	if !info.Mode().IsRegular() { // it changed in between
		return File{}, nil, p.refuse("is " + kindName(info.Mode()) + " and no file")
	}
	file := File{Path: p.path, Size: info.Size(), Modified: info.ModTime(), ReadOnly: p.readOnly()}
	if info.Size() > MaxText {
		file.TooLarge = true
		return file, info, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxText+1))
	if err != nil {
		return File{}, nil, p.failed(err)
	}
	file.fill(data)
	return file, info, nil
}

// fill sets the content, of which at most one byte more than [MaxText] was read.
func (f *File) fill(data []byte) {
	f.Size = max(f.Size, int64(len(data)))
	switch {
	case len(data) > MaxText:
		f.TooLarge = true
	case !isText(data):
		f.Binary = true
	default:
		f.Size, f.Text, f.Version = int64(len(data)), string(data), version(data)
	}
}

func isText(data []byte) bool { return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data) }

// version names a content: the first half of its SHA-256, in hexadecimal.
func version(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:sha256.Size/2])
}

// ErrContent means that what is to be written, or to be replaced, is no text of
// at most [MaxText] bytes.
var ErrContent = errors.New("only text of at most 1 MB is written here")

// checkText refuses text that could not be read again.
func checkText(path, text string) error {
	if len(text) > MaxText {
		return fmt.Errorf("%s cannot be saved: the text has %d bytes and %w", shown(path), len(text), ErrContent)
	}
	if !isText([]byte(text)) {
		return fmt.Errorf("%s cannot be saved: the text has NUL characters or is no UTF-8, and %w", shown(path), ErrContent)
	}
	return nil
}
