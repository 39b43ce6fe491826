package secret

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Entry is one secret of a listing, without its value.
type Entry struct {
	Name string `json:"name"`
	// Places are where it is, in the order in which they are asked: the first one
	// counts.
	Places []Place `json:"places"`
	// Problem says why its place in the keychain is not sure, if so.
	Problem string `json:"problem,omitempty"`
}

// List lists what is kept, and those of the other names that are in the
// environment, sorted by name. The error matches [ErrFile], or is that of ctx.
func (s *Store) List(ctx context.Context, others ...string) ([]Entry, error) {
	ix, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	values, err := s.readValues()
	if err != nil {
		return nil, err
	}
	var all names
	for _, name := range slices.Concat(others, ix.Keychain, slices.Collect(maps.Keys(values))) {
		all.add(name)
	}
	list := []Entry{}
	for _, name := range all {
		e := Entry{Name: name, Places: []Place{}}
		if strings.TrimSpace(s.getenv(name)) != "" {
			e.Places = append(e.Places, InEnvironment)
		}
		if ix.Keychain.has(name) {
			s.inKeychain(ctx, &e)
		}
		if _, ok := values[name]; ok {
			e.Places = append(e.Places, InFile)
		}
		if len(e.Places) > 0 || e.Problem != "" {
			list = append(list, e)
		}
	}
	return list, ctx.Err()
}

// inKeychain adds what the keychain says about a secret that should be there.
func (s *Store) inKeychain(ctx context.Context, e *Entry) {
	_, err := s.chain.get(ctx, e.Name)
	switch {
	case errors.Is(err, ErrNotFound):
		e.Problem = errGone(e.Name).Error()
		return
	case err != nil:
		e.Problem = err.Error()
	}
	e.Places = append(e.Places, InKeychain)
}
