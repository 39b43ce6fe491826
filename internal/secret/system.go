package secret

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/zalando/go-keyring"
)

// service is the name of all our secrets in the keychain.
const service = "tendril"

// System is the keychain of this operating system: Keychain on macOS, Credential
// Manager on Windows, the Secret Service elsewhere.
func System() Keychain { return systemKeychain{} }

type systemKeychain struct{}

// Get implements [Keychain].
func (systemKeychain) Get(name string) (string, error) {
	if err := reachable(); err != nil {
		return "", err
	}
	value, err := keyring.Get(service, name)
	return value, known(err)
}

// Set implements [Keychain]. The length is checked before: on macOS the library
// leaves a process behind when it finds out by itself.
func (systemKeychain) Set(name, value string) error {
	if most := longest(runtime.GOOS); len(value) > most {
		return fmt.Errorf("%w, which keeps at most %d bytes", ErrTooLong, most)
	}
	if err := reachable(); err != nil {
		return err
	}
	return known(keyring.Set(service, name, value))
}

// Delete implements [Keychain].
func (systemKeychain) Delete(name string) error {
	if err := reachable(); err != nil {
		return err
	}
	return known(keyring.Delete(service, name))
}

// longest is how many bytes of a value the keychain of a system keeps. macOS has
// room for a command of 4096 bytes, with the value in base64.
func longest(goos string) int {
	switch goos {
	case "windows":
		return 2560
	case "darwin":
		return 2900
	}
	return MaxValueBytes
}

// known translates the errors of the library.
func known(err error) error {
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return ErrNotFound
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return ErrTooLong
	}
	return err
}

// reachable reports why the Secret Service cannot be there. Without a session
// bus the library would start one, a daemon that outlives us.
func reachable() error {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return nil
	}
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return nil
	}
	run := "/run/user/" + strconv.Itoa(os.Getuid())
	for _, socket := range []string{"/bus", "/dbus-session"} {
		if _, err := os.Stat(run + socket); err == nil {
			return nil
		}
	}
	return errors.New("there is no session bus")
}
