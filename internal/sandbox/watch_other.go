//go:build !linux

package sandbox

func measure(int) (Peaks, bool) { return Peaks{}, false }

func freeFiles(string) int64 { return 0 }

func limitProcess(int, Limits) {}
