package cli

import "os"

// hungUp cannot be told here: the next write fails instead.
func hungUp(*os.File) bool { return false }
