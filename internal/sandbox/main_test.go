package sandbox

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

func TestMain(m *testing.M) {
	jail.Main()
	remove, err := trustTestAuthority()
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		remove()
		os.Exit(code)
	}))
}

// selfForTests is this test binary where the operating system layer is to be
// tested.
func selfForTests() string {
	if os.Getenv("TENDRIL_TEST_LAYERS") == "flags" {
		return ""
	}
	return "/proc/self/exe"
}
