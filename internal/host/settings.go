package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/workspace"
)

// Settings are all settings, with their defaults.
type Settings struct {
	Path     string          `json:"path" doc:"Of the file"`
	Settings json.RawMessage `json:"settings"`
	Known    []string        `json:"known" doc:"The paths of all settings that there are"`
	Warnings []Fault         `json:"warnings"`
	Problems []Fault         `json:"problems" doc:"With which nothing runs"`
}

// Change is a setting and its new value.
type Change struct {
	Path  string          `json:"path" minLength:"1" maxLength:"500"`
	Value json.RawMessage `json:"value" doc:"null takes the setting away, so that its default holds"`
}

// Changed is what a person should know of settings that were changed.
type Changed struct {
	Warnings []Fault `json:"warnings"`
}

func (h *Host) settingsAPI(api huma.API) {
	huma.Register(api, op("GET", "/api/settings", "getSettings", "All settings", 200), h.getSettings)
	huma.Register(api, op("PUT", "/api/settings", "changeSettings", "Change settings, all or none, once an agent has tried them", 200), h.changeSettings)
}

func (h *Host) getSettings(context.Context, *struct{}) (*of[Settings], error) {
	d, err := config.Describe(h.Home)
	if err != nil {
		p := problemOf(http.StatusUnprocessableEntity, "settings", err)
		p.Hint = "mend the file in an editor"
		return nil, p
	}
	s := Settings{Path: config.Path(h.Home), Settings: d.Settings, Known: d.Known, Warnings: warningsOf(d.Warnings), Problems: []Fault{}}
	for _, p := range d.Problems {
		s.Problems = append(s.Problems, Fault{Path: p.Path, Text: p.Reason})
	}
	return &of[Settings]{s}, nil
}

func warningsOf(warnings []config.Warning) []Fault {
	faults := []Fault{}
	for _, w := range warnings {
		faults = append(faults, Fault{Path: w.Path, Text: w.Text})
	}
	return faults
}

// changeSettings saves settings that do not keep from working what works now.
func (h *Host) changeSettings(ctx context.Context, in *struct {
	Body struct {
		Changes   []Change `json:"changes" minItems:"1" maxItems:"100"`
		Interrupt bool     `json:"interrupt,omitempty" doc:"Also while a turn runs, which ends then"`
	}
},
) (*of[Changed], error) {
	h.services.changing.Lock()
	defer h.services.changing.Unlock()
	if err := h.mayChange(in.Body.Changes); err != nil {
		return nil, err
	}
	if err := h.mayInterrupt(in.Body.Interrupt); err != nil {
		return nil, err
	}
	var changes []config.Change
	for _, c := range in.Body.Changes {
		changes = append(changes, config.Change{Path: c.Path, Value: string(c.Value)})
	}
	proposal, err := config.Propose(config.Dirs{User: h.User, Tendril: h.Home}, changes...)
	if err != nil {
		return nil, refused(err)
	}
	if err := h.try(ctx, proposal); err != nil {
		return nil, err
	}
	if err := h.createWorkspace(in.Body.Changes); err != nil {
		return nil, err
	}
	if err := h.mayInterrupt(in.Body.Interrupt); err != nil { // one may have begun
		return nil, err
	}
	switch err := proposal.Save(); {
	case errors.Is(err, config.ErrChanged):
		return nil, problemOf(http.StatusConflict, "changed", err)
	case err != nil:
		return nil, refused(err)
	}
	h.restartNow(ctx)
	return &of[Changed]{Changed{warningsOf(proposal.Warnings)}}, nil
}

// mayInterrupt refuses what ends turns that run, unless that is wanted.
func (h *Host) mayInterrupt(wanted bool) error {
	running := h.running()
	if len(running) == 0 || wanted {
		return nil
	}
	p := problemOf(http.StatusConflict, "running", errors.New("the agent must start afresh for new settings, and a turn runs, which would be interrupted"))
	p.Hint, p.Sessions = "wait for its end, or interrupt it", running
	return p
}

// refused is why settings are not saved.
func refused(err error) *Problem {
	p := problemOf(http.StatusUnprocessableEntity, "refused", err)
	var all *config.Error
	if errors.As(err, &all) {
		for _, one := range all.Problems {
			p.Problems = append(p.Problems, Fault{Path: one.Path, Text: one.Reason})
		}
	} else {
		p.Problems = []Fault{{Text: err.Error()}}
	}
	return p
}

// try starts an agent with proposed settings. It refuses those with which
// something does not work that works without them; what is missing anyway may
// still be missing, so that a setup can be completed step by step.
func (h *Host) try(ctx context.Context, proposal *config.Proposal) error {
	text, err := proposal.Text()
	if err != nil {
		return refused(err)
	}
	file, err := os.CreateTemp(h.Home, trialName) // mode 0600
	if err != nil {
		return refused(fmt.Errorf("the settings cannot be tried: %w", err))
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(text); err != nil {
		_ = file.Close()
		return refused(fmt.Errorf("the settings cannot be tried: %w", err))
	}
	if err := file.Close(); err != nil {
		return refused(fmt.Errorf("the settings cannot be tried: %w", err))
	}
	found := startReady(ctx, h.Trial(file.Name()))
	if len(found.Problems) == 0 || ctx.Err() != nil {
		return failure(ctx.Err())
	}
	before := startReady(ctx, h.Command())
	if ctx.Err() != nil {
		return failure(ctx.Err())
	}
	found.Problems = slices.DeleteFunc(found.Problems, func(o obstacle) bool { return before.has(o.About) })
	if len(found.Problems) == 0 || before.has("settings") || before.has("agent") { // nothing works, and more was not looked at
		return nil
	}
	var texts []string
	p := problemOf(http.StatusUnprocessableEntity, "refused", errors.New(""))
	for _, o := range found.Problems {
		texts = append(texts, o.Message)
		p.Problems = append(p.Problems, Fault{Path: settingOf(o.About), Text: o.Message})
	}
	p.Detail = "an agent with these settings would not work, so they are not saved: " + strings.Join(texts, "; ")
	return p
}

// settingOf is the setting that an obstacle is most likely about.
func settingOf(about string) string {
	return map[string]string{"workspace": "workspace", "model": "model", "sandbox": "sandbox"}[about]
}

// trialName is the name of settings that are tried.
const trialName = ".settings-*.json"

// sweepTrials removes what a host that was killed has left.
func (h *Host) sweepTrials() {
	left, _ := filepath.Glob(filepath.Join(h.Home, trialName)) // the pattern is good
	for _, path := range left {
		_ = os.Remove(path) // the next start tries again
	}
}

// createWorkspace creates the folder that settings name as workspace.
func (h *Host) createWorkspace(changes []Change) error {
	for _, c := range changes {
		var given string
		if c.Path != "workspace" || json.Unmarshal(c.Value, &given) != nil || given == "" {
			continue
		}
		place, err := h.Setup.Workspace(given)
		if err == nil {
			var w *workspace.Workspace
			if w, _, err = workspace.Open(place.Path); err == nil {
				err = w.Close()
			}
		}
		if err != nil {
			p := problemOf(http.StatusUnprocessableEntity, "refused", err)
			p.Problems = []Fault{{Path: c.Path, Text: err.Error()}}
			return p
		}
	}
	return nil
}

// restartWithin is how long a change of settings waits for the old agent's end.
const restartWithin = 15 * time.Second

// restartNow lets the agent start with what is new, whether turns run or not,
// also when the client is gone.
func (h *Host) restartNow(ctx context.Context) {
	h.look()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartWithin)
	defer cancel()
	if err := h.supervisor.startAfresh(ctx); err != nil {
		h.Log("the agent does not start afresh: " + err.Error())
	}
	h.hub.publish("settings", struct{}{})
}
