package secret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Keychain is the keychain of an operating system. Its calls may hang: they take
// no context. The errors of Get and Delete match [ErrNotFound] when it does not
// have the name, that of Set matches [ErrTooLong] when the value is too long for
// it; any other error means that it cannot be used.
type Keychain interface {
	Get(name string) (string, error)
	Set(name, value string) error
	Delete(name string) error
}

// ErrTooLong matches a value that is too long for the keychain.
var ErrTooLong = errors.New("the value is too long for the keychain")

// chain bounds the calls to a keychain. Once one was unavailable, it is not asked
// again: each call would wait as long.
//
// A call that hangs is left behind with its goroutine, which lasts until the
// call returns or the process ends.
type chain struct {
	keychain Keychain
	timeout  time.Duration

	mu   sync.Mutex
	down error // why it is not asked any more
}

func newChain(k Keychain, timeout time.Duration) *chain {
	c := &chain{keychain: k, timeout: cmp.Or(timeout, 2*time.Second)}
	if k == nil {
		c.down = fmt.Errorf("%w: there is none", ErrUnavailable)
	}
	return c
}

func (c *chain) get(ctx context.Context, name string) (string, error) {
	return c.call(ctx, func() (string, error) { return c.keychain.Get(name) }, func() {})
}

// set keeps a value and proves that it was kept. A value that arrives after the
// call was given up is taken back.
func (c *chain) set(name, value string) error {
	_, err := c.call(context.Background(), func() (string, error) { return "", c.keychain.Set(name, value) },
		func() { _ = c.keychain.Delete(name) }) // nobody is left to tell
	if err != nil {
		return err
	}
	kept, err := c.get(context.Background(), name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if kept != value {
		return c.fail(errors.New("it does not give back what was put there"))
	}
	return nil
}

// remove deletes a value; one that is not there is no error.
func (c *chain) remove(name string) error {
	_, err := c.call(context.Background(), func() (string, error) { return "", c.keychain.Delete(name) }, func() {})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// call makes one call and waits for it no longer than the timeout. late runs
// when the call succeeds after that. The error matches ErrNotFound, ErrTooLong
// or ErrUnavailable, or is that of ctx.
func (c *chain) call(ctx context.Context, do func() (string, error), late func()) (string, error) {
	if err := c.unavailable(); err != nil {
		return "", err
	}
	type answer struct {
		value string
		err   error
	}
	answers, gone := make(chan answer), make(chan struct{})
	go func() {
		value, err := guarded(do)
		select {
		case answers <- answer{value, err}:
		case <-gone:
			if err == nil {
				_, _ = guarded(func() (string, error) { late(); return "", nil })
			}
		}
	}()
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case a := <-answers:
		if a.err == nil || errors.Is(a.err, ErrNotFound) || errors.Is(a.err, ErrTooLong) {
			return a.value, a.err
		}
		return "", c.fail(a.err)
	case <-timer.C:
		close(gone)
		return "", c.fail(fmt.Errorf("it did not answer within %s; it may wait to be unlocked", c.timeout))
	case <-ctx.Done():
		close(gone)
		return "", ctx.Err()
	}
}

// guarded makes a panic an error: a library that reads the words of another
// process must not end this one.
func guarded(do func() (string, error)) (value string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("it answered with nonsense")
		}
	}()
	return do()
}

func (c *chain) unavailable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

// fail remembers that the keychain is unavailable.
func (c *chain) fail(why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil {
		c.down = fmt.Errorf("%w: %w", ErrUnavailable, why)
	}
	return c.down
}
