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
	"strconv"
	"strings"
	"time"
)

// identity is what a host of this user keeps from one start to the next, in
// host.json, which only the user can read. With the same secret and port a tab
// that is open survives a restart.
type identity struct {
	Secret string `json:"secret"`
	Port   int    `json:"port"`
}

func identityPath(home string) string { return filepath.Join(home, "host.json") }

// readIdentity reads the identity, or makes one. One that cannot be read is
// replaced: all that it loses is who was signed in.
func readIdentity(home string) (identity, error) {
	var id identity
	data, err := os.ReadFile(identityPath(home))
	if err == nil {
		err = json.Unmarshal(data, &id)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return id, fmt.Errorf("the host's secret cannot be read: %w", err)
	}
	if err != nil || len(id.Secret) < 32 || id.Port < 0 || id.Port > 65535 {
		id = identity{Secret: rand.Text() + rand.Text()}
	}
	return id, nil
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

// proofAge is how long a proof of another process of this user is good.
const proofAge = 30 * time.Second

// prove makes the Authorization of a process that can read the secret. It does
// not tell the secret to whoever listens at the port.
func (id identity) prove(purpose string, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 10)
	return "Tendril " + at + "." + id.mac("proof", purpose, at)
}

func (id identity) proved(purpose, authorization string, now time.Time) bool {
	proof, ok := strings.CutPrefix(authorization, "Tendril ")
	at, sum, found := strings.Cut(proof, ".")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if !ok || !found || err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > proofAge {
		return false
	}
	return equal(sum, id.mac("proof", purpose, at))
}

// Find says where a host of this user is, if one runs: its address ("" when none
// was ever started), the Authorization of POST /api/host/open, and a check of
// the proof in the answer, because anybody may listen there by now.
func Find(home string) (address, authorization string, check func(nonce, proof string) bool) {
	id, err := readIdentity(home)
	if err != nil || id.Port == 0 {
		return "", "", nil
	}
	address = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(id.Port))
	return address, id.prove("open", time.Now()), func(nonce, proof string) bool { return equal(proof, id.mac("host", nonce)) }
}
