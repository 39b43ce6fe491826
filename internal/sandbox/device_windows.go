package sandbox

import (
	"path/filepath"
	"strings"
)

// sameDevice says whether a rename between two folders could work. When in
// doubt it could.
func sameDevice(a, b string) bool {
	return strings.EqualFold(filepath.VolumeName(a), filepath.VolumeName(b))
}
