//go:build !linux

package jail

import (
	"errors"
	"net"
	"os/exec"
)

var errNone = errors.New("this operating system has no such layer")

// Main does nothing here.
func Main() {}

// Process is never made here.
type Process struct {
	Cmd      *exec.Cmd
	Listener net.Listener
}

// Command fails.
func Command(*exec.Cmd, string, *User) (*Process, error) { return nil, errNone }

// Start fails.
func (p *Process) Start() error { return errNone }

// Enter fails.
func (p *Process) Enter(Spec) error { return errNone }

// Abandon does nothing.
func (p *Process) Abandon() {}

// Libraries fails.
func Libraries(string) ([]Mount, error) { return nil, errNone }
