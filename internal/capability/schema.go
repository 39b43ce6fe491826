package capability

import (
	"bytes"
	"encoding/json"

	"github.com/tendril-agent/tendril/internal/schema"
)

// CheckArgs checks args, the JSON object of a call, against the parameters of
// the capability. The error names each place that does not fit.
func (r *Runnable) CheckArgs(args json.RawMessage) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil || object == nil {
		return &InputError{"args", "want a JSON object, got " + kindOf(args)}
	}
	if len(r.Parameters) == 0 {
		return nil
	}
	parameters, err := schema.Compile(r.Parameters)
	if err != nil {
		return nil // of an old workspace: its gate has warned
	}
	return parameters.Validate("args", args)
}
