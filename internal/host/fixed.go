package host

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// fixed is what the command line has chosen.
func (h *Host) fixed() []string {
	fixed := []string{}
	if h.Workspace != "" {
		fixed = append(fixed, "workspace")
	}
	if h.Model != "" {
		fixed = append(fixed, "model")
	}
	return fixed
}

// mayChange refuses changes that would have no effect, because the command line
// goes before them.
func (h *Host) mayChange(changes []Change) error {
	provider, _, _ := strings.Cut(h.Model, "/")
	for _, c := range changes {
		flag, given := "", ""
		switch {
		case h.Workspace != "" && c.Path == "workspace":
			flag, given = "--workspace", h.Workspace
		case h.Model != "" && slices.Contains([]string{"model", "model.provider", "model." + provider + ".modelId"}, c.Path):
			flag, given = "--model", h.Model
		default:
			continue
		}
		p := problemOf(http.StatusConflict, "fixed", fmt.Errorf("%s cannot be changed here, because Tendril was started with %s %s, which goes before the settings", c.Path, flag, given))
		p.Hint = "end Tendril and start it without " + flag
		p.Problems = []Fault{{Path: c.Path, Text: p.Detail}}
		return p
	}
	return nil
}
