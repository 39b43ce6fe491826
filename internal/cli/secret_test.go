package cli_test

import (
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestSecret_SilentBus: a session bus that never answers does not keep anybody
// waiting, and the secret goes to the file.
func TestSecret_SilentBus(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only here the keychain is behind a bus")
	}
	dir := t.TempDir()
	bus := filepath.Join(dir, "bus")
	listener, err := net.Listen("unix", bus) // its queue takes connections that nobody serves
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, address := range []string{"unix:path=" + bus, "unix:path=" + bus + "-nowhere", "nonsense"} {
		cmd := exec.Command("tendril", "secret", "set", "A_KEY")
		cmd.Env = append(cmd.Environ(), "TENDRIL_HOME="+filepath.Join(dir, "home"), "HOME="+dir, "TEST_KEYCHAIN=system", "DBUS_SESSION_BUS_ADDRESS="+address)
		cmd.Stdin = strings.NewReader("canary\n")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "the keychain is unavailable") || strings.Contains(string(out), "canary") {
			t.Errorf("%s: %v, %s", address, err, out)
		}
		t.Logf("%s", out)
	}
}
