//go:build !linux

package sandbox

import "time"

func measure(int) (Peaks, bool) { return Peaks{}, false }

func freeSpace(string) space { return space{} }

func made(string, time.Time) (int64, bool) { return 0, false }

func unnamed(int, time.Time) space { return space{} }

func limitProcess(int, Limits) {}

// memoryIsShort is not asked where nothing is kept warm.
func memoryIsShort() bool { return false }
