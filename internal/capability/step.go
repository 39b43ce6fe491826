package capability

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// The steps of the gate, in order.
const (
	StepShape        = "shape"
	StepModules      = "modules"
	StepDependencies = "dependencies"
	StepPermissions  = "permissions"
	StepTypes        = "types"
)

// StepState says how far a step is.
type StepState string

// The states of a step.
const (
	StepRunning StepState = "running"
	StepPassed  StepState = "passed"
	StepWarned  StepState = "warned"
	StepFailed  StepState = "failed"
	StepSkipped StepState = "skipped"
)

// Step is news of one step of the gate, and, when it is over, evidence.
type Step struct {
	Name     string        `json:"name"`
	State    StepState     `json:"state"`
	Note     string        `json:"note,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

// Evidence is what the gate saw of a version.
type Evidence struct {
	Gate  int    `json:"gate"` // the version of the gate's rules
	Steps []Step `json:"steps"`
	// Overridden: a person let it pass despite what its type check said.
	Overridden bool `json:"overridden,omitempty"`
}

// Warnings returns the notes of the steps that warned.
func (e Evidence) Warnings() []string {
	var notes []string
	for _, s := range e.Steps {
		if s.State == StepWarned {
			notes = append(notes, s.Name+": "+s.Note)
		}
	}
	return notes
}

// The authors of a version.
const (
	ByModel = "model"
	ByHuman = "human"
)

// Provenance says who wrote a version, and when it was asked for.
type Provenance struct {
	By      string // ByModel or ByHuman
	Person  string // who it was, of ByHuman: a login name
	Model   string // "provider/model", of ByModel
	Session string
	// Request is the user's text that it was written for. It is kept in this
	// machine's database only, never in a file of the workspace.
	Request string
}

// Admission is the gate's yes, after the version was kept.
type Admission struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Hash    string `json:"sha256"`
	// Status is active, unproven or pending.
	Status   string   `json:"status"`
	Grants   Grants   `json:"grants"`
	Evidence Evidence `json:"evidence"`
	Warnings []string `json:"warnings"`
	// Dependencies are the remote modules that it is locked to.
	Dependencies []sandbox.Dependency `json:"dependencies"`
	// Command allows a pending version.
	Command string `json:"command,omitempty"`
}

// Grants is what a version may reach, in words for a person: paths are relative
// to the workspace.
type Grants struct {
	Net     []string        `json:"net"`
	Read    []string        `json:"read"`
	Write   []string        `json:"write"`
	Secrets []string        `json:"secrets"`
	Limits  json.RawMessage `json:"limits,omitempty"`
}

// String says it in one line.
func (g Grants) String() string {
	net := "no network"
	if len(g.Net) > 0 {
		net = "network: " + strings.Join(g.Net, ", ")
	}
	files := func(what string, paths []string) string {
		if len(paths) == 0 {
			return what + " nothing"
		}
		return what + " " + strings.Join(paths, ", ")
	}
	if len(g.Secrets) > 0 {
		net += "; gets " + secretsText(g.Secrets)
	}
	return net + "; " + files("reads", g.Read) + "; " + files("writes", g.Write)
}

// The status of a capability in a listing.
const (
	StatusActive   = "active"   // has run with success on this machine
	StatusUnproven = "unproven" // has not
	StatusPending  = "pending"  // waits for a person
	StatusConflict = "conflict" // two versions of the truth
	StatusArchived = "archived" // kept, but neither listed nor run
)
