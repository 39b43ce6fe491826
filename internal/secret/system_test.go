package secret

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
)

// The library has one keychain for the process, so these tests are not parallel.
// withBus makes the bus look as if it were there.
func withBus(t *testing.T) { t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent") }

func TestSystem_Works(t *testing.T) {
	withBus(t)
	keyring.MockInit()
	dir := t.TempDir()
	set(t, open(dir, System()), "A", "a  b é", InKeychain)
	lookup(t, open(dir, System()), "A", "a  b é", InKeychain)
	if v, err := keyring.Get("tendril", "A"); err != nil || v != "a  b é" {
		t.Errorf("got %q, %v", v, err)
	}
	if err := open(dir, System()).Remove("A"); err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.Get("tendril", "A"); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := System().Delete("A"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestSystem_TooLong(t *testing.T) {
	withBus(t)
	keyring.MockInit()
	most := longest(runtime.GOOS)
	if err := System().Set("A", strings.Repeat("a", most+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v", err)
	}
	check(t, System().Set("A", strings.Repeat("a", most)))
	for _, goos := range []string{"windows", "darwin"} {
		if n := longest(goos); n < 1000 || n > 3000 {
			t.Errorf("%s: %d", goos, n)
		}
	}
	keyring.MockInitWithError(keyring.ErrSetDataTooBig)
	if err := System().Set("A", "a"); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v", err)
	}
}

// TestSystem_Unavailable: every error but "not found" means that there is no
// keychain.
func TestSystem_Unavailable(t *testing.T) {
	withBus(t)
	for _, failure := range []error{errors.New("dbus: no such interface"), keyring.ErrUnsupportedPlatform, errors.New("exit status 51")} {
		keyring.MockInit()
		dir := t.TempDir()
		set(t, open(dir, System()), "A", "a", InKeychain)
		keyring.MockInitWithError(failure)
		s := open(dir, System())
		_, err := s.Lookup(t.Context(), "A")
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), failure.Error()) {
			t.Errorf("got %v", err)
		}
		keyring.MockInit() // it comes back, and this store does not ask again
		if kept := set(t, s, "B", "b", InFile); !errors.Is(kept.NotKeychain, ErrUnavailable) {
			t.Errorf("got %v", kept.NotKeychain)
		}
	}
}

func TestReachable(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the keychain needs no bus here")
	}
	withBus(t)
	if err := reachable(); err != nil {
		t.Error(err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	without := reachable()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "autolaunch:")
	if err := reachable(); (err == nil) != (without == nil) {
		t.Errorf("got %v, without an address %v", err, without)
	}
}
