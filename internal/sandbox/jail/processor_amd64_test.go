//go:build linux

package jail

import (
	"errors"
	"os"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

const otherProcessors = 1

// otherProcessor makes a system call in the way of 32 bits, where number 20 asks
// for the process's own number. A kernel without such calls ends it with a fault.
func otherProcessor(say func(string, error)) {
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		say("a call of 32 bits", err)
		return
	}
	debug.SetPanicOnFault(true)
	defer func() {
		if recover() != nil {
			say("a call of 32 bits", errors.New("a fault"))
		}
	}()
	copy(code, "\xb8\x14\x00\x00\x00\xcd\x80\x48\x98\xc3") // mov $20, %eax; int $0x80; cltq; ret
	start := unsafe.Pointer(&code[0])
	function := unsafe.Pointer(&start)
	if got := (*(*func() int)(unsafe.Pointer(&function)))(); got < 0 {
		err = unix.Errno(-got)
	}
	say("a call of 32 bits", err)
}
