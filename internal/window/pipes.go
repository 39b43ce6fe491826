package window

import (
	"errors"
	"os"
	"os/exec"
)

// pipes are the two ways of talking with a browser.
type pipes struct {
	to, from *os.File // ours
	theirs   [2]*os.File
}

// newPipes makes pipes and hands their ends to cmd, as --remote-debugging-pipe expects them.
func newPipes(cmd *exec.Cmd) (*pipes, error) {
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, out, err := os.Pipe()
	if err != nil {
		in.Close()
		to.Close()
		return nil, err
	}
	p := &pipes{to: to, from: from, theirs: [2]*os.File{in, out}}
	if err := inherit(cmd, in, out); err != nil {
		p.started()
		p.Close()
		return nil, err
	}
	return p, nil
}

// started closes the browser's ends here; it has its own now.
func (p *pipes) started() {
	for _, f := range p.theirs {
		f.Close()
	}
}

// Close closes our ends, which ends the browser. It can be called again.
func (p *pipes) Close() error {
	err := errors.Join(p.to.Close(), p.from.Close())
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
