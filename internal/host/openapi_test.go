package host

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write what the tests find")

// TestOpenAPI compares the description that is checked in, from which the types
// of the pages are generated, with the one of the code.
func TestOpenAPI(t *testing.T) {
	const path = "../../api/openapi.json"
	got, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("api/openapi.json is not what the code says (%v); run: go test ./internal/host -run OpenAPI -update, and make types", err)
	}
}
