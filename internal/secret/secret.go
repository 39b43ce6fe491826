// Package secret keeps named secrets, such as the keys of providers: in the
// keychain of the operating system, or else in a file that only its owner may
// read. A variable of the environment with the name of a secret wins over both.
//
// No error and no listing of this package holds a value.
package secret

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrInvalid matches a name or a value that no secret can have.
	ErrInvalid = errors.New("not a secret")
	// ErrNotFound matches the absence of a secret.
	ErrNotFound = errors.New("no such secret")
	// ErrUnavailable matches a keychain that cannot be asked: there is none, it is
	// locked, or it does not answer.
	ErrUnavailable = errors.New("the keychain is unavailable")
	// ErrFile matches a file of the store that cannot be used as it is. It is never
	// overwritten then.
	ErrFile = errors.New("a file of secrets cannot be used")
)

// Place is where a secret is.
type Place string

// The places, in the order in which they are asked.
const (
	InEnvironment Place = "environment"
	InKeychain    Place = "keychain"
	InFile        Place = "file"
)

// Options configure [Open].
type Options struct {
	Dir      string              // the folder of the files; empty: only the environment is asked
	Getenv   func(string) string // the environment; nil: there is none
	Keychain Keychain            // nil: there is none
	Timeout  time.Duration       // of one call to the keychain; zero: 2 s
}

// Store finds and keeps secrets. It is safe for concurrent use, also by several
// processes.
//
// The keychain is asked only for names that were put there through a Store of
// the same folder, as the index of names says: so nobody who keeps nothing there
// waits for it, or is asked to unlock it. It is shared by all folders of a user.
type Store struct {
	dir    string
	getenv func(string) string
	chain  *chain
}

// Open returns a store. Nothing is touched before it is used.
func Open(o Options) *Store {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	return &Store{dir: o.Dir, getenv: o.Getenv, chain: newChain(o.Keychain, o.Timeout)}
}

// Found is a secret and where it was found. It prints without its value.
type Found struct {
	Value string
	Place Place
}

// String says where the secret is.
func (f Found) String() string { return "a secret in the " + string(f.Place) }

// GoString is String, for %#v.
func (f Found) GoString() string { return f.String() }

// Lookup finds a secret: in the environment, then the keychain, then the file. A
// place that cannot be asked is passed over. The error is a [*NotFoundError],
// matches [ErrInvalid] for a name that no secret can have, or is that of ctx.
func (s *Store) Lookup(ctx context.Context, name string) (Found, error) {
	if err := CheckName(name); err != nil {
		return Found{}, err
	}
	if v := s.getenv(name); strings.TrimSpace(v) != "" {
		return Found{v, InEnvironment}, nil
	}
	missing := &NotFoundError{Name: name}
	switch v, err := s.fromKeychain(ctx, name); {
	case err == nil:
		return Found{v, InKeychain}, nil
	case ctx.Err() != nil:
		return Found{}, ctx.Err()
	case !errors.Is(err, ErrNotFound):
		missing.Problems = append(missing.Problems, err)
	}
	values, err := s.readValues()
	if err != nil {
		missing.Problems = append(missing.Problems, err)
	}
	if v, ok := values[name]; ok {
		return Found{v, InFile}, nil
	}
	return Found{}, missing
}

// fromKeychain asks the keychain when the index says that name is there.
func (s *Store) fromKeychain(ctx context.Context, name string) (string, error) {
	ix, err := s.readIndex()
	if err != nil {
		return "", err
	}
	if !ix.Keychain.has(name) {
		return "", ErrNotFound
	}
	v, err := s.chain.get(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return "", errGone(name)
	}
	return v, err
}

// errGone is about a secret that somebody else took from the keychain.
func errGone(name string) error {
	return fmt.Errorf("%s was put into the keychain and is not there any more; keep it again with: tendril secret set %s", name, name)
}

// NotFoundError says that a secret is nowhere. It matches [ErrNotFound] and its
// problems.
type NotFoundError struct {
	Name     string
	Problems []error // why places that may hold it could not be asked
}

func (e *NotFoundError) Error() string {
	text := "there is no secret " + e.Name
	for _, p := range e.Problems {
		text += "; " + p.Error()
	}
	return text
}

// Is implements [errors.Is] for [ErrNotFound].
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Unwrap returns the problems.
func (e *NotFoundError) Unwrap() []error { return e.Problems }
