// Package testkit holds what tests of several packages share: a scripted model
// provider on a real socket, a checker of the requests that it gets, and the
// way to the pinned Deno. Only tests import it.
package testkit

import (
	"os"
	"testing"
)

// Deno returns the path of the Deno that `make setup` fetched and named in
// DENO_PATH. Without one the test fails: what needs a sandbox is not skipped
// in silence.
func Deno(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("DENO_PATH")
	if path == "" {
		tb.Fatal("DENO_PATH is not set; run the tests with `make test`, which fetches the pinned Deno")
	}
	return path
}
