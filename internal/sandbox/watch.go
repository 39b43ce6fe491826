package sandbox

import (
	"fmt"
	"io/fs"
	"os"
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
	w.files.begin(roots)
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
		now.NewFiles = w.files.count(w.limits.Files)
		w.peaks.raise(now)
		if err := w.limits.check(now); err != nil {
			w.stop(err)
			return
		}
	}
}

// fileCounter knows how many files were made below some folders. The number of
// free inodes is cheap to ask for, but everybody on the disk changes it: only
// when it fell by the limit, or where there is none, files are counted.
type fileCounter struct {
	roots   []string
	since   time.Time
	free    []int64 // at the start; negative where the file system does not tell
	counted int64
	next    time.Time
}

func (c *fileCounter) begin(roots []string) {
	c.roots, c.since = roots, time.Now().Add(-time.Second) // clocks of file systems are coarse
	for _, root := range roots {
		c.free = append(c.free, freeFiles(root))
	}
}

func (c *fileCounter) count(limit int) int64 {
	if time.Now().Before(c.next) || !c.suspicious(limit) {
		return c.counted
	}
	begin := time.Now()
	c.counted = 0
	for _, root := range c.roots {
		c.counted += newFiles(root, c.since, int64(limit)+1)
	}
	c.next = time.Now().Add(max(countEvery, 10*time.Since(begin)))
	return c.counted
}

func (c *fileCounter) suspicious(limit int) bool {
	for i, root := range c.roots {
		free := freeFiles(root)
		if c.free[i] < 0 || free < 0 || c.free[i]-free > int64(limit) {
			return true
		}
	}
	return false
}

// newFiles counts, up to a bound, what was made or changed below root since then.
func newFiles(root string, since time.Time, most int64) int64 {
	var n int64
	_ = filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone, or closed: it counts for nothing
		}
		if info, err := entry.Info(); err == nil && changed(info).After(since) {
			n++
		}
		if n > most {
			return filepath.SkipAll
		}
		return nil
	})
	return n
}

// changed is when a file was last modified.
func changed(info os.FileInfo) time.Time { return info.ModTime() }
