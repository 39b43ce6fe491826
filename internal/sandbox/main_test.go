package sandbox

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

// self is the program that becomes the jail.
var self string

func TestMain(m *testing.M) {
	jail.Main()
	forget, err := trustTestAuthority()
	if err != nil {
		panic(err)
	}
	path, remove, err := buildJail()
	if err != nil {
		panic(err)
	}
	self = path
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		remove()
		forget()
		os.Exit(code)
	}))
}

// selfForTests is the program that becomes the jail where the operating system
// layer is to be tested.
func selfForTests() string {
	if os.Getenv("TENDRIL_TEST_LAYERS") == "flags" {
		return ""
	}
	return self
}
