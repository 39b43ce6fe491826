package capability

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/store"
)

// Checker looks at a source without running it, and fetches what it depends on. *[sandbox.Runner] is one.
type Checker interface {
	Imports(ctx context.Context, name string, source []byte) ([]sandbox.Import, error)
	Check(ctx context.Context, name string, source, lock []byte, argsType string) ([]sandbox.Diagnostic, error)
	// Lock and HoldsModules are about the remote dependencies of a source, and
	// RegistryHost about where those of a kind (npm, jsr) come from.
	Lock(ctx context.Context, name string, source []byte, hosts []string) ([]byte, error)
	HoldsModules(ctx context.Context, name string, source, lock []byte) error
	RegistryHost(kind string) string
}

// Options are what a registry needs.
type Options struct {
	Workspace string    // absolute; the registry is its folder tools
	DB        *store.DB // what this machine has admitted and seen
	Checker   Checker   // nil: nothing new can be admitted
	Max       int       // capabilities; 500 when 0
	ListBytes int       // size of a listing; 12 KiB when 0
	Policy    Policy
	Approver  Approver                 // nil: nobody can be asked
	Reserved  func(secret string) bool // names that no capability may be given; nil: none
	Now       func() time.Time         // nil: time.Now
	// Inspect leaves everything as it is found: nothing is repaired, and nothing
	// can be written.
	Inspect bool

	system system // nil: the real one
}

// errInspecting is what a registry that is only looked at says to a writer.
var errInspecting = errors.New("the registry is only looked at")

// Notice is something that was found and mended, or that a person should mend:
// plain sentences.
type Notice struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Registry is the capabilities of one workspace. It is safe for concurrent use,
// and any number of processes may have the same one open: writers take turns,
// readers never wait.
type Registry struct {
	opts      Options
	workspace string // canonical: the key in the database
	root      *os.Root
	disk      disk
	lock      *lockedfile.Mutex
	allowed   answers // hosts that a person allowed until this process ends

	mu      sync.Mutex
	notices []Notice
	raw     []byte // the index that decoded is made of
	decoded *index
}

// Open opens the registry of a workspace, which must exist. It creates nothing.
// What an interrupted registration left is completed or undone, and an index
// that cannot be read is set aside and rebuilt; [Registry.Notices] tells.
// Close ends the use.
func Open(ctx context.Context, opts Options) (*Registry, error) {
	opts = opts.withDefaults()
	if !filepath.IsAbs(opts.Workspace) {
		return nil, fmt.Errorf("open the registry: the workspace %s is not an absolute path", opts.Workspace)
	}
	if opts.DB == nil {
		return nil, errors.New("open the registry: it needs a database")
	}
	if err := opts.DB.Migrate(ctx, "capability", migrations); err != nil {
		return nil, fmt.Errorf("open the registry: %w", err)
	}
	root, err := os.OpenRoot(opts.Workspace)
	if err != nil {
		return nil, fmt.Errorf("open the registry: %w", err)
	}
	r := &Registry{opts: opts, root: root, disk: disk{opts.system}, workspace: canonicalPath(opts.Workspace)}
	if opts.system == nil {
		r.disk = disk{rootSystem{root}}
	}
	r.lock = lockedfile.MutexAt(filepath.Join(opts.Workspace, filepath.FromSlash(lockPath)))
	if err := r.start(ctx); err != nil {
		root.Close()
		return nil, fmt.Errorf("open the registry: %w", err)
	}
	return r, nil
}

func (o Options) withDefaults() Options {
	if o.Max <= 0 {
		o.Max = 500
	}
	if o.ListBytes <= 0 {
		o.ListBytes = 12 << 10
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func canonicalPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Close releases the workspace. The database stays open: it is the caller's.
func (r *Registry) Close() error { return r.root.Close() }

// Notices returns what was found wrong so far, oldest first.
func (r *Registry) Notices() []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Notice{}, r.notices...)
}

func (r *Registry) notify(message, hint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := Notice{message, hint}
	for _, old := range r.notices {
		if old == n {
			return
		}
	}
	r.notices = append(r.notices, n)
}

// start repairs what a crash has left and reads the index.
func (r *Registry) start(ctx context.Context) error {
	if err := r.checkTools(); err != nil {
		return err
	}
	if r.interrupted() && !r.opts.Inspect {
		err := r.exclusively(ctx, func() error { return nil })
		if err != nil && !unwritable(err) {
			return err
		}
		if err != nil {
			r.notify(fmt.Sprintf("an interrupted registration could not be completed or undone: %v", err), "the next start tries it again")
		}
	}
	ix, err := r.load(ctx)
	if err == nil && ix.conflict != "" {
		r.notify(ix.conflict, "choose with: tendril capability resolve; until then nothing can be registered")
	}
	return err
}

// checkTools refuses a tools folder that leads out of the workspace.
func (r *Registry) checkTools() error {
	info, err := r.root.Stat(toolsPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// What is there now and is no link has been made since.
		if info, err := r.root.Lstat(toolsPath); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return errors.New("tools is a link that leads nowhere; remove it")
		}
		return nil
	case err != nil:
		return fmt.Errorf("the folder tools of the workspace cannot be used (a link that leads out of it is not followed): %w", err)
	case !info.IsDir():
		return errors.New("tools is not a folder; rename that file")
	}
	return nil
}

func (r *Registry) interrupted() bool {
	for _, name := range []string{journalPath, scratchPath} {
		if _, err := r.root.Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// load returns the index as it is on disk now. One that is unreadable is set
// aside and rebuilt first.
func (r *Registry) load(ctx context.Context) (*index, error) {
	ix, damage, err := r.read()
	if err != nil || damage == "" {
		return ix, err
	}
	err = r.exclusively(ctx, func() error {
		var err error
		ix, err = r.loadLocked()
		return err
	})
	if errors.Is(err, errInspecting) {
		rebuilt, _, err := r.rebuild()
		return rebuilt, err
	}
	if unwritable(err) {
		r.notify(fmt.Sprintf("%s; it stays as it is and what can be read of it is used, because it could not be mended: %v", damage, err),
			"then open the workspace again")
		rebuilt, _, err := r.rebuild()
		return rebuilt, err
	}
	return ix, err
}

// loadLocked is load for the holder of the lock.
func (r *Registry) loadLocked() (*index, error) {
	ix, damage, err := r.read()
	if err != nil || damage == "" {
		return ix, err
	}
	return r.mend(damage)
}

// read decodes the index. damage says why it must be rebuilt.
func (r *Registry) read() (ix *index, damage string, err error) {
	if ix := r.unchangedIndex(); ix != nil {
		return ix, "", nil
	}
	data, err := readFile(r.root, indexPath, maxIndex)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if names := r.versionedNames(); len(names) > 0 {
			return nil, "tools/index.json is missing", nil
		}
		return emptyIndex(), "", nil
	case errors.Is(err, errTooLarge):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", fmt.Errorf("read the registry: %w; move it away, and the list of capabilities is rebuilt from what is kept", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ix, err = decodeIndex(data, r.decoded); err != nil {
		return nil, "tools/index.json cannot be read: " + err.Error(), nil
	}
	if len(ix.bad) > 0 {
		return nil, fmt.Sprintf("tools/index.json holds %d entries that cannot be read", len(ix.bad)), nil
	}
	r.raw, r.decoded = data, ix
	return ix, "", nil
}

// unchangedIndex is the index that was read last, when the file still holds the
// same bytes. nil: it must be read.
func (r *Registry) unchangedIndex() *index {
	r.mu.Lock()
	raw, ix := r.raw, r.decoded
	r.mu.Unlock()
	if ix == nil || !holdsBytes(r.root, indexPath, raw) {
		return nil
	}
	return ix
}

// writeIndex is the commit point of a change: it replaces tools/index.json by
// what can be read back. The lock is held.
func (r *Registry) writeIndex(ix *index) error {
	data := ix.encode()
	if len(data) > maxIndex {
		return fmt.Errorf("tools/index.json would have %d bytes, and at most %d are read: delete capabilities that nobody needs", len(data), maxIndex)
	}
	r.mu.Lock()
	before := r.decoded
	r.mu.Unlock()
	written, err := readIndex(data, before)
	if err != nil || len(written.bad) > 0 {
		return fmt.Errorf("tools/index.json could not be read back and is not written: %w", cmp.Or(err, errors.New("an entry is none")))
	}
	written.tidy = true
	if err := replace(r.disk, indexPath, data); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw, r.decoded = data, written
	return nil
}

// exclusively runs f while no other writer, in any process, is at work. What a
// crash left is repaired first.
func (r *Registry) exclusively(ctx context.Context, f func() error) error {
	if r.opts.Inspect {
		return errInspecting
	}
	unlock, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.recover(); err != nil {
		return writeError(fmt.Errorf("repair the registry after a crash: %w", err))
	}
	return f()
}

// acquire takes the lock. When ctx ends first, the lock is given back as soon
// as the wait for it is over.
func (r *Registry) acquire(ctx context.Context) (unlock func(), err error) {
	if err := r.checkTools(); err != nil {
		return nil, err
	}
	if info, err := r.root.Lstat(lockPath); err != nil {
		if err := r.makeFolders(); err != nil {
			return nil, writeError(fmt.Errorf("write to the registry: %w", err))
		}
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; remove it", lockPath)
	}
	type taken struct {
		unlock func()
		err    error
	}
	done := make(chan taken, 1)
	go func() {
		unlock, err := r.lock.Lock()
		done <- taken{unlock, err}
	}()
	select {
	case t := <-done:
		if t.err != nil {
			return nil, writeError(fmt.Errorf("lock the registry: %w", t.err))
		}
		return t.unlock, nil
	case <-ctx.Done():
		go func() {
			if t := <-done; t.err == nil {
				t.unlock()
			}
		}()
		return nil, fmt.Errorf("wait for another writer of the registry: %w", ctx.Err())
	}
}

// makeFolders makes the folders of the registry. They last before the lock is
// made, so where that is they need not be synced again.
func (r *Registry) makeFolders() error {
	for _, folder := range []string{toolsPath, versionsPath} {
		if err := r.disk.MakeFolder(folder); err != nil {
			return err
		}
		if err := r.disk.syncFolder(path.Dir(folder)); err != nil { // when a crash came between
			return err
		}
	}
	return nil
}
