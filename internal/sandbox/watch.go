package sandbox

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// Peaks are the most that a run used, as far as it was measured.
type Peaks struct {
	RSSBytes     int64         `json:"rss_bytes,omitempty"`
	WrittenBytes int64         `json:"written_bytes,omitempty"`
	NewFiles     int64         `json:"new_files,omitempty"`
	Threads      int64         `json:"threads,omitempty"`
	CPU          time.Duration `json:"cpu_ns,omitempty"`
}

func (p *Peaks) raise(q Peaks) {
	p.RSSBytes = max(p.RSSBytes, q.RSSBytes)
	p.WrittenBytes = max(p.WrittenBytes, q.WrittenBytes)
	p.NewFiles = max(p.NewFiles, q.NewFiles)
	p.Threads = max(p.Threads, q.Threads)
	p.CPU = max(p.CPU, q.CPU)
}

// limitError ends a run that used too much of something.
type limitError struct {
	outcome Outcome
	text    string
}

func (e *limitError) Error() string { return e.text }

// check returns what of the limits is exceeded, or nil.
func (l Limits) check(p Peaks) *limitError {
	switch {
	case p.RSSBytes > int64(l.RSSMB)<<20:
		return &limitError{OutOfMemory, fmt.Sprintf("used more than the limit of %d MB of memory", l.RSSMB)}
	case p.WrittenBytes > int64(l.WrittenMB)<<20:
		return &limitError{DiskLimit, fmt.Sprintf("wrote more than the limit of %d MB to files", l.WrittenMB)}
	case p.NewFiles > int64(l.Files):
		return &limitError{FilesLimit, fmt.Sprintf("made more than the limit of %d new files", l.Files)}
	case p.Threads > int64(l.Processes):
		return &limitError{ProcessLimit, fmt.Sprintf("started more than the limit of %d processes and threads", l.Processes)}
	case l.CPU > 0 && p.CPU > l.CPU:
		return &limitError{CPULimit, fmt.Sprintf("used more than the limit of %s of processor time", l.CPU)}
	}
	return nil
}

const (
	watchEvery = 15 * time.Millisecond
	countEvery = 300 * time.Millisecond // files, where they have to be counted one by one
)

// watcher looks after one process.
type watcher struct {
	pid    int
	limits Limits
	roots  []string // writable folders
	stop   func(error)

	peaks Peaks
	files fileCounter
	quit  chan struct{}
	done  chan struct{}
}

// watch stops a process that exceeds limits. The returned function ends the
// watching and tells the peaks.
func watch(pid int, limits Limits, roots []string, stop func(error)) (ended func() Peaks) {
	w := &watcher{pid: pid, limits: limits, roots: roots, stop: stop, quit: make(chan struct{}), done: make(chan struct{})}
	w.files.begin(pid, roots)
	go w.loop()
	return func() Peaks {
		close(w.quit)
		<-w.done
		return w.peaks
	}
}

func (w *watcher) loop() {
	defer close(w.done)
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-ticker.C:
		}
		now, ok := measure(w.pid)
		if !ok {
			continue // it is gone, or this system does not tell
		}
		made := w.files.count(w.limits)
		now.NewFiles, now.WrittenBytes = made.files, max(now.WrittenBytes, made.bytes)
		w.peaks.raise(now)
		if err := w.limits.check(now); err != nil {
			w.stop(err)
			return
		}
	}
}

// space is a number of files and of bytes that they take, on a file system or by
// a run.
type space struct{ files, bytes int64 }

// fileCounter knows what was made below some folders. What is free of a file
// system is cheap to ask for, but everybody on it changes that: only when it fell
// by a limit, or is not told, files are counted one by one. How much a process
// wrote is known for disks (see measure), not for file systems in memory.
//
// Nothing that the run can change is believed: the times of a file are those
// that the kernel keeps, one without a name is found by its descriptor, and a
// folder that cannot be listed stands for all that is missing.
type fileCounter struct {
	pid     int
	roots   []string
	since   time.Time
	free    []space // at the start; a negative number of files where it is not told
	counted space
	next    time.Time
}

func (c *fileCounter) begin(pid int, roots []string) {
	c.pid, c.roots, c.since = pid, roots, time.Now().Add(-time.Second) // clocks of file systems are coarse
	for _, root := range roots {
		c.free = append(c.free, freeSpace(root))
	}
}

func (c *fileCounter) count(l Limits) space {
	if time.Now().Before(c.next) || !c.suspicious(l) {
		return c.counted
	}
	begin := time.Now()
	c.counted = unnamed(c.pid, c.since)
	for i, root := range c.roots {
		c.walk(root, c.free[i], l)
	}
	c.next = time.Now().Add(max(countEvery, 10*time.Since(begin)))
	return c.counted
}

func (c *fileCounter) suspicious(l Limits) bool {
	for i, root := range c.roots {
		was, free := c.free[i], freeSpace(root)
		if was.files < 0 || free.files < 0 || was.files-free.files > int64(l.Files) || was.bytes-free.bytes > int64(l.WrittenMB)<<20 {
			return true
		}
	}
	return false
}

// walk counts what was made below root, up to the limits. free is what the file
// system had at the start.
func (c *fileCounter) walk(root string, free space, l Limits) {
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		bytes, isNew := made(path, c.since)
		switch {
		case !isNew:
		case err != nil && entry != nil:
			now := freeSpace(root)
			c.counted.files += max(0, free.files-now.files)
			c.counted.bytes += max(0, free.bytes-now.bytes)
		default:
			c.counted.files++
			c.counted.bytes += bytes
		}
		if c.counted.files > int64(l.Files) || c.counted.bytes > int64(l.WrittenMB)<<20 {
			return filepath.SkipAll
		}
		return nil
	})
}
