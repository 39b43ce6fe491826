package mcp

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// tokenLength is that of [rand.Text], which holds 130 random bits.
const tokenLength = 26

// Token returns the token of this user's HTTP server, and makes one when the
// file, which only the user may read, is not there.
func Token(path string) (token string, created bool, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		token, err = newToken(path)
		return token, err == nil, err
	}
	if err != nil {
		return "", false, fmt.Errorf("read the token: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", false, fmt.Errorf("the token file %s is not a regular file; remove it", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", false, fmt.Errorf("the token file %s can be read by others; remove it, and a new one is made", path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", false, fmt.Errorf("read the token: %w", err)
	}
	if token = strings.TrimSpace(string(raw)); len(token) != tokenLength {
		return "", false, fmt.Errorf("the token file %s does not hold a token; remove it, and a new one is made", path)
	}
	return token, false, nil
}

// newToken makes a token and keeps it. It appears whole or not at all.
func newToken(path string) (string, error) {
	token := rand.Text()
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*") // 0600
	if err != nil {
		return "", fmt.Errorf("keep the token: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", fmt.Errorf("keep the token: %w", err)
	}
	return token, nil
}

// authorized compares in constant time. A token in the URL does not count: URLs
// are logged.
func authorized(r *http.Request, token string) bool {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	scheme, got, _ := strings.Cut(values[0], " ")
	a, b := sha256.Sum256([]byte(strings.TrimSpace(got))), sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
