//go:build race

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// buildJail builds the program that becomes the jail, without the race detector:
// with it a start takes several times as long, and there are hundreds.
func buildJail() (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "tendril-jail-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "jail")
	if out, err := exec.Command("go", "build", "-o", path, "./testdata/jail").CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("%w\n%s", err, out)
	}
	return path, remove, nil
}
