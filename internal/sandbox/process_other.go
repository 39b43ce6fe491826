//go:build unix && !linux

package sandbox

import "syscall"

// dieWithParent does nothing: there is no parent-death signal here.
func dieWithParent(*syscall.SysProcAttr) {}
