package host

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
)

// identity is what a host of this user keeps from one start to the next, in
// host.json, which only the user can read. By the secret processes of the user
// know each other; with the same port an address stays good.
type identity struct {
	Secret  string `json:"secret"`
	Address string `json:"address"` // to reach it at, without the port
	Port    int    `json:"port"`
}

func identityPath(home string) string { return filepath.Join(home, "host.json") }

// readIdentity reads the identity, or makes one. One that cannot be read, or that
// others can, is replaced: all that it loses is the port.
func readIdentity(home string) (identity, error) {
	var id identity
	info, err := os.Lstat(identityPath(home))
	if err == nil && isPrivate(info) {
		var data []byte
		if data, err = os.ReadFile(identityPath(home)); err == nil {
			err = json.Unmarshal(data, &id)
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return id, fmt.Errorf("the host's secret cannot be read: %w", err)
	}
	if err != nil || net.ParseIP(id.Address) == nil || len(id.Secret) < 32 || id.Port < 0 || id.Port > 65535 {
		id = identity{Secret: rand.Text() + rand.Text()}
	}
	return id, nil
}

// isPrivate reports whether only the user can read a file, as far as its mode
// says, which it does not on Windows.
func isPrivate(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0)
}

func (id identity) write(home string) error {
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(home, ".host-*.json") // mode 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), identityPath(home))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}

// mac proves knowledge of the secret, for one purpose.
func (id identity) mac(purpose string, parts ...string) string {
	h := hmac.New(sha256.New, []byte(id.Secret))
	for _, part := range append([]string{purpose}, parts...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func equal(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
