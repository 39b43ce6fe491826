package config

import (
	"bytes"
	"errors"
	"os"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// ErrChanged means that somebody else has changed the settings since a
// [Proposal] was made.
var ErrChanged = errors.New("the settings were changed by somebody else meanwhile")

// Proposal is the settings with changes that are not saved yet.
type Proposal struct {
	Warnings []Warning // that the changes bring

	cfg    *Config
	home   string
	before []byte // the text of the file; nil: there is none
	doc    *object
}

// Propose makes the changes without saving them. Its errors are those of [Set].
func Propose(dirs Dirs, changes ...Change) (*Proposal, error) {
	home := dirs.Tendril
	text, err := readText(home)
	if err != nil {
		return nil, err
	}
	doc, _, err := decode(home, text)
	if err != nil {
		return nil, err
	}
	old, before := inspect(doc)
	for _, c := range changes {
		if err := apply(doc, c); err != nil {
			return nil, err
		}
	}
	cfg, after := inspect(doc)
	if fresh := added(before.problems, after.problems); len(fresh) > 0 {
		return nil, failf("not saved: %w", &Error{File: Path(home), Problems: fresh})
	}
	if cfg.Workspace != old.Workspace && doc.lookup([]string{"workspace"}) != nil {
		if err := checkWorkspace(cfg.Workspace, dirs); err != nil {
			return nil, failf("not saved: workspace %q %w", cfg.Workspace, err)
		}
	}
	cfg.file = Path(home)
	return &Proposal{Warnings: added(before.warnings, after.warnings), cfg: cfg, home: home, before: text, doc: doc}, nil
}

// Config is the settings as they would be.
func (p *Proposal) Config() *Config { return p.cfg }

// Text is what the file will hold.
func (p *Proposal) Text() ([]byte, error) {
	text, err := (&member{obj: p.doc}).indented()
	return append(text, '\n'), err
}

// Save saves the settings, unless they are not any more what they were when the
// proposal was made: then the error matches [ErrChanged].
func (p *Proposal) Save() error {
	unlock, err := lock(p.home)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := readText(p.home)
	if err != nil {
		return err
	}
	if (now == nil) != (p.before == nil) || !bytes.Equal(now, p.before) {
		return failf("%w; nothing was saved", ErrChanged)
	}
	return p.write()
}

// write replaces the file. The caller holds the lock.
func (p *Proposal) write() error {
	text, err := p.Text()
	if err == nil {
		err = save(Path(p.home), text)
	}
	if err != nil {
		return failf("the settings cannot be saved, nothing was changed: %w", err)
	}
	return nil
}

// lock lets one process at a time change the settings.
func lock(home string) (unlock func(), err error) {
	if home == "" {
		return nil, failf("there is no folder for the settings; set HOME or TENDRIL_HOME")
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, failf("the folder of the settings cannot be created: %w", err)
	}
	unlock, err = lockedfile.MutexAt(Path(home) + ".lock").Lock()
	if err != nil {
		return nil, failf("the settings cannot be changed: %w", err)
	}
	return unlock, nil
}
