package secret

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// Kept says what became of a secret that was set.
type Kept struct {
	Place Place
	// NotKeychain is why it is in the file; nil when it is in the keychain.
	NotKeychain error
	// Leftover means that an older value is still in the keychain, which was
	// unavailable. It is not used any more, and is deleted when the keychain can
	// be reached again.
	Leftover bool
}

// Set keeps a secret: in the keychain, or in the file when that is unavailable or
// the value is too long for it. It is in one of them then, never in both. The
// error matches [ErrInvalid] or [ErrFile]; the older value, if there was one, is
// still used then. It takes some seconds at most, and cannot be cancelled in
// between.
func (s *Store) Set(name, value string) (Kept, error) {
	var kept Kept
	if err := errors.Join(CheckName(name), CheckValue(value)); err != nil {
		return kept, err
	}
	err := s.change(func(c *changes) error {
		why := c.toKeychain(name, value)
		switch {
		case errors.Is(why, ErrFile):
			return why
		case why == nil:
			kept = Kept{Place: InKeychain}
			return c.sweep()
		}
		kept = Kept{Place: InFile, NotKeychain: why}
		err := c.toFile(name, value)
		kept.Leftover = c.index.Leftover.has(name)
		return err
	})
	return kept, err
}

// Remove forgets a secret, wherever it is kept. The error matches [ErrNotFound]
// when it is nowhere, [ErrUnavailable] when it may still be in the keychain, or
// [ErrFile]. A variable of the environment stays.
func (s *Store) Remove(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.change(func(c *changes) error {
		_, inFile := c.values[name]
		inKeychain := c.index.Keychain.has(name) || c.index.Leftover.has(name)
		if !inFile && !inKeychain {
			return &NotFoundError{Name: name}
		}
		if err := c.dropValue(name); err != nil || !inKeychain {
			return err
		}
		if err := s.chain.remove(name); err != nil {
			return fmt.Errorf("%s is still in the keychain: %w; try again when it can be used", name, err)
		}
		c.index.Keychain.drop(name)
		c.index.Leftover.drop(name)
		return errors.Join(c.saveIndex(), c.sweep())
	})
}

// changes are the files of a store while their lock is held.
type changes struct {
	*Store
	index  *index
	values map[string]string
}

// change runs do alone among all processes, with files that can be read.
func (s *Store) change(do func(*changes) error) error {
	if err := s.prepare(); err != nil {
		return err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(s.dir, lockFile)).Lock()
	if err != nil {
		return unusable("the secrets cannot be changed: %w", err)
	}
	defer unlock()
	c := &changes{Store: s}
	if c.index, err = s.readIndex(); err != nil {
		return err
	}
	if c.values, err = s.readValues(); err != nil {
		return err
	}
	return do(c)
}

// toKeychain keeps a secret in the keychain. The index names it first, so that
// nothing is there that no listing shows; the file forgets it last. The error
// says why it is not there, or matches ErrFile.
func (c *changes) toKeychain(name, value string) error {
	if _, err := c.chain.get(context.Background(), name); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	c.index.Keychain.add(name)
	c.index.Leftover.drop(name)
	if err := c.saveIndex(); err != nil {
		return err
	}
	if err := c.chain.set(name, value); err != nil {
		return err
	}
	return c.dropValue(name)
}

// toFile keeps a secret in the file, and takes an older one from the keychain.
func (c *changes) toFile(name, value string) error {
	c.values[name] = value
	if err := c.saveValues(); err != nil {
		return err
	}
	if !c.index.Keychain.has(name) && !c.index.Leftover.has(name) {
		return nil
	}
	c.index.Keychain.drop(name)
	c.index.Leftover.drop(name)
	if c.chain.remove(name) != nil {
		c.index.Leftover.add(name)
	}
	return c.saveIndex()
}

// sweep deletes what is left over in a keychain that can be reached.
func (c *changes) sweep() error {
	before := len(c.index.Leftover)
	for _, name := range append(names(nil), c.index.Leftover...) {
		if c.chain.remove(name) == nil {
			c.index.Leftover.drop(name)
		}
	}
	if len(c.index.Leftover) == before {
		return nil
	}
	return c.saveIndex()
}

func (c *changes) dropValue(name string) error {
	if _, ok := c.values[name]; !ok {
		return nil
	}
	delete(c.values, name)
	return c.saveValues()
}

func (c *changes) saveValues() error {
	return c.write(valuesFile, document{Secrets: c.values}, len(c.values) == 0)
}

func (c *changes) saveIndex() error {
	return c.write(indexFile, document{Keychain: c.index.Keychain, Leftover: c.index.Leftover}, c.index.isEmpty())
}
