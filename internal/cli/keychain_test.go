package cli_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tendril-agent/tendril/internal/secret"
)

// testKeychain is the keychain of a tested command, as TEST_KEYCHAIN says: none,
// that of the system ("system"), or a folder. So no test touches the keychain of
// whoever runs it.
func testKeychain() secret.Keychain {
	switch folder := os.Getenv("TEST_KEYCHAIN"); folder {
	case "":
		return nil
	case "system":
		return secret.System()
	default:
		return folderKeychain(folder)
	}
}

// folderKeychain has a file for each secret, and keeps little.
type folderKeychain string

func (f folderKeychain) path(name string) string { return filepath.Join(string(f), name) }

func (f folderKeychain) Get(name string) (string, error) {
	raw, err := os.ReadFile(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", secret.ErrNotFound
	}
	return string(raw), err
}

func (f folderKeychain) Set(name, value string) error {
	if len(value) > 40 {
		return secret.ErrTooLong
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	return os.WriteFile(f.path(name), []byte(value), 0o600)
}

func (f folderKeychain) Delete(name string) error {
	err := os.Remove(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return secret.ErrNotFound
	}
	return err
}
