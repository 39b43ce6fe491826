package secret

import (
	"encoding/json"
	"slices"
)

// The files, in the folder of the store.
const (
	valuesFile = "secrets.json"       // secrets that are in no keychain
	indexFile  = "secrets.index.json" // names of those that are in the keychain
	lockFile   = "secrets.lock"
)

// names are names of secrets, sorted, each once.
type names []string

func (n names) has(name string) bool { return slices.Contains(n, name) }

func (n *names) add(name string) {
	if at, found := slices.BinarySearch(*n, name); !found {
		*n = slices.Insert(*n, at, name)
	}
}

func (n *names) drop(name string) {
	*n = slices.DeleteFunc(*n, func(s string) bool { return s == name })
}

// index says which names are in the keychain: it cannot be listed.
type index struct {
	Keychain names
	// Leftover are values that are not used any more, and could not be deleted
	// because the keychain was unavailable.
	Leftover names
}

func (ix *index) isEmpty() bool { return len(ix.Keychain) == 0 && len(ix.Leftover) == 0 }

// document is the form of both files on disk.
type document struct {
	Version  int               `json:"version"`
	Secrets  map[string]string `json:"secrets,omitempty"`
	Keychain names             `json:"keychain,omitempty"`
	Leftover names             `json:"leftover,omitempty"`
}

// formatVersion is the version of the files that this package writes and reads.
const formatVersion = 1

func encode(d document) ([]byte, error) {
	d.Version = formatVersion
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}
