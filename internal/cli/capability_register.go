package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tendril-agent/tendril/internal/capability"
)

// maxDefinition bounds a file that is to be registered; the gate bounds more
// strictly.
const maxDefinition = 1 << 20

func (c *command) capabilityRegister(ctx context.Context, a *app, args []string) error {
	file, beside := args[0], ""
	if base, ok := strings.CutSuffix(file, ".ts"); ok {
		beside = base + ".json"
	}
	if len(args) == 2 {
		beside = args[1]
	}
	if beside == "" {
		return usageError("%s does not end in .ts; name the file of its definition as well", file)
	}
	code, err := readBounded(file)
	if err != nil {
		return err
	}
	raw, err := readBounded(beside)
	if err != nil {
		return fmt.Errorf("the definition of it: %w", err)
	}
	def, err := capability.ParseDefinition(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", beside, err)
	}
	admission, err := a.registry.Register(ctx, def, string(code), person(), c.gateSteps())
	if err != nil {
		return err
	}
	return c.admitted(admission, "registered")
}

// readBounded reads a file that is not too large.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxDefinition+1))
	if err == nil && len(data) > maxDefinition {
		err = fmt.Errorf("%s is larger than %d KiB", path, maxDefinition>>10)
	}
	return data, err
}
