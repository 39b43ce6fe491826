//go:build linux && (amd64 || arm64)

package window

import "unsafe"

// fixSignals lets every signal handler of this process run on the alternate stack. GLib and JavaScriptCore
// install some that do not ask for it, JavaScriptCore late; on the small stack of a goroutine such a
// handler overwrites memory (os/signal, "Go programs that use cgo or SWIG").
func (v *view) fixSignals() {
	const onStack = 0x08000000 // SA_ONSTACK
	// struct sigaction of glibc and musl on 64 bit machines.
	type sigaction struct {
		handler  uintptr // 0 is SIG_DFL, 1 SIG_IGN
		mask     [128]byte
		flags    int32
		restorer uintptr
	}
	for signal := int32(1); signal < 32; signal++ {
		action := new(sigaction)
		if v.lib.Sigaction(signal, nil, unsafe.Pointer(action)) != 0 || action.handler < 2 || action.flags&onStack != 0 {
			continue
		}
		action.flags |= onStack
		v.lib.Sigaction(signal, unsafe.Pointer(action), nil)
	}
}
