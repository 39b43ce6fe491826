package host

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
)

// CapabilityList is the capabilities of the workspace, the best for a query
// first. What others wrote in them is data.
type CapabilityList struct {
	Capabilities []CapabilitySummary `json:"capabilities"`
	Total        int                 `json:"total"`
	Message      string              `json:"message,omitempty" doc:"When nothing matches"`
	Notes        []string            `json:"notes" doc:"Where what runs is not what stands in tools/"`
}

// CapabilitySummary is a capability in a list.
type CapabilitySummary struct {
	Name        string          `json:"name"`
	Capability  string          `json:"capability" doc:"What it does"`
	Triggers    []string        `json:"triggers"`
	Suppression []string        `json:"suppression"`
	Parameters  json.RawMessage `json:"parameters,omitempty" doc:"JSON Schema of the arguments"`
	Version     string          `json:"version,omitempty"`
	Status      string          `json:"status" enum:"active,unproven,pending,conflict,archived"`
	Network     string          `json:"network,omitempty" enum:"none,granted,approved,waits,revoked,refused"`
}

// CapabilityInfo is all that is known of a capability.
type CapabilityInfo struct {
	Name       string                `json:"name"`
	Definition capability.Definition `json:"definition"`
	Version    string                `json:"version"`
	Hash       string                `json:"sha256,omitempty"`
	Status     string                `json:"status" enum:"active,unproven,pending,conflict,archived"`
	CreatedBy  string                `json:"createdBy,omitempty" doc:"model or human"`
	Updated    time.Time             `json:"updated,omitzero"`
	Source     string                `json:"source"`
	Grants     Grants                `json:"grants"`
	Pending    string                `json:"pending,omitempty" doc:"A version that waits for a person"`
	Versions   []CapabilityVersion   `json:"versions"`
	Gate       []Step                `json:"gate" doc:"What the gate of this machine saw; empty: it has not seen this version yet"`
	Runs       int                   `json:"runs"`
	Succeeded  int                   `json:"succeeded"`
	LastRun    string                `json:"lastRun,omitempty" format:"date-time"`
	Notes      []string              `json:"notes" doc:"Drift, and what is wrong"`
	// Dependencies are the remote modules that it is locked to.
	Dependencies []Dependency `json:"dependencies"`
}

// Dependency is a remote module that a capability is locked to.
type Dependency struct {
	Kind      string `json:"kind" enum:"npm,jsr,https"`
	Name      string `json:"name" doc:"Of a package, or the URL of a module"`
	Version   string `json:"version,omitempty" doc:"Of a package"`
	Integrity string `json:"integrity" doc:"Its hash, as Deno locks it"`
	Direct    bool   `json:"direct" doc:"The source itself imports it"`
}

// Grants is what a capability may reach. Paths are relative to the workspace.
type Grants struct {
	Net      []string        `json:"net" doc:"Hosts"`
	Read     []string        `json:"read"`
	Write    []string        `json:"write"`
	Limits   json.RawMessage `json:"limits,omitempty"`
	Approved []string        `json:"approved" doc:"Hosts that a person has allowed for good"`
	Secrets  []string        `json:"secrets" doc:"Names of those that it asks for"`
	// ApprovedSecrets are those that a person has allowed.
	ApprovedSecrets []string `json:"approvedSecrets" doc:"Secrets that a person has allowed for good, each with the hosts that it may be used with"`
}

// CapabilityVersion is a version that is kept, or the record of a deletion.
type CapabilityVersion struct {
	Version   string    `json:"version"`
	Hash      string    `json:"sha256,omitempty"`
	State     string    `json:"state,omitempty" enum:"active,pending,deleted,unreadable" doc:"Left out for an earlier one"`
	CreatedBy string    `json:"createdBy,omitempty" doc:"model or human"`
	Person    string    `json:"person,omitempty" doc:"Who it was, when it was a person"`
	Model     string    `json:"model,omitempty"`
	Session   string    `json:"session,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	Parent    string    `json:"parent,omitempty" doc:"Hash of the version that was active before"`
	Note      string    `json:"note,omitempty"`
	Request   string    `json:"request,omitempty" doc:"What the user had asked for; known where that was"`
	Admitted  time.Time `json:"admitted,omitzero" doc:"When the gate of this machine let it pass; left out: it has not yet"`
	Runs      int       `json:"runs"`
	Succeeded int       `json:"succeeded"`
}

// CapabilityRun is how a run ended.
type CapabilityRun struct {
	Status     string          `json:"status" doc:"ok, failed, timeout, or why else it ended"`
	Version    string          `json:"version"`
	Output     string          `json:"output" doc:"The result, or what went wrong"`
	Stdout     string          `json:"stdout,omitempty"`
	Stderr     string          `json:"stderr,omitempty"`
	DurationMS int64           `json:"durationMs"`
	Notes      []string        `json:"notes" doc:"For the person: drift, what was not granted"`
	File       string          `json:"file,omitempty" doc:"Where a result is kept that is too long for a model, relative to the workspace"`
	Files      []ResultFile    `json:"files" doc:"What it wrote, and pictures that it names"`
	Warm       bool            `json:"warm" doc:"A process waited for it"`
	Detail     json.RawMessage `json:"detail" doc:"The execution as a tool call has it"`
}

// CapabilityAdmission is the gate's yes.
type CapabilityAdmission struct {
	Version  string   `json:"version"`
	Status   string   `json:"status" enum:"active,unproven,pending"`
	Gate     []Step   `json:"gate"`
	Warnings []string `json:"warnings"`
	Command  string   `json:"command,omitempty" doc:"Allows a version that waits"`
}

// CapabilityPath is the name of a capability. It is exported for the framework,
// which sets it.
type CapabilityPath struct {
	Name string `path:"name" maxLength:"200"`
}

func (h *Host) capabilitiesAPI(api huma.API) {
	huma.Register(api, op("GET", "/api/capabilities", "listCapabilities", "The capabilities of the workspace", 200), h.listCapabilities)
	huma.Register(api, op("GET", "/api/capabilities/{name}", "getCapability", "All that is known of a capability", 200), h.getCapability)
	huma.Register(api, op("POST", "/api/capabilities/{name}/run", "runCapability", "Run a capability; nobody is asked meanwhile", 200), h.runCapability)
	huma.Register(api, op("PUT", "/api/capabilities/{name}", "editCapability", "Make a new version of a capability, through the gate", 200), h.editCapability)
	h.versionsAPI(api)
	h.registryAPI(api)
}

func (h *Host) listCapabilities(ctx context.Context, in *struct {
	Query string `query:"query" maxLength:"1000" doc:"Some words"`
},
) (*of[CapabilityList], error) {
	out := CapabilityList{Capabilities: []CapabilitySummary{}, Notes: []string{}}
	if place, err := h.Setup.Workspace(""); err == nil && !place.Exists {
		return &of[CapabilityList]{out}, nil // it is created by the first prompt
	}
	err := h.Capabilities(ctx, func(b Workbench) error {
		listing, err := b.Registry.List(ctx, in.Query)
		if err != nil {
			return err
		}
		permissions, err := b.Registry.Permissions(ctx)
		if err != nil {
			return err
		}
		notes, err := b.Registry.Drift(ctx)
		if err != nil {
			return err
		}
		out.Total, out.Message, out.Notes = listing.Total, listing.Message, append(out.Notes, notes...)
		of := map[string]capability.Permission{}
		for _, p := range permissions {
			of[p.Name] = p
		}
		for _, s := range listing.Capabilities {
			out.Capabilities = append(out.Capabilities, CapabilitySummary{
				s.Name, s.Capability, s.Triggers, s.Suppression, s.Parameters, of[s.Name].Version, s.Status, string(of[s.Name].Network),
			})
		}
		return nil
	})
	if err != nil {
		return nil, capabilityProblem(err)
	}
	return &of[CapabilityList]{out}, nil
}

func (h *Host) getCapability(ctx context.Context, in *CapabilityPath) (*of[CapabilityInfo], error) {
	var info *capability.Info
	err := h.Capabilities(ctx, func(b Workbench) (err error) {
		info, err = b.Registry.Show(ctx, in.Name)
		return err
	})
	if err != nil {
		return nil, capabilityProblem(err)
	}
	out := CapabilityInfo{
		Name: info.Definition.Name, Definition: info.Definition, Version: info.Version, Hash: info.Hash, Status: info.Status,
		CreatedBy: info.CreatedBy, Updated: info.Updated, Source: info.Source, Pending: info.Pending, Versions: []CapabilityVersion{}, Gate: []Step{},
		Runs: info.Usage.Runs, Succeeded: info.Usage.Succeeded, LastRun: info.Usage.Last, Notes: info.Notes,
		Grants: Grants{info.Grants.Net, info.Grants.Read, info.Grants.Write, info.Grants.Limits, info.Approved, info.Grants.Secrets, info.Secrets},
	}
	out.Dependencies = []Dependency{}
	for _, d := range info.Dependencies {
		out.Dependencies = append(out.Dependencies, Dependency(d))
	}
	for _, v := range info.Versions {
		out.Versions = append(out.Versions, versionOf(v))
	}
	if info.Evidence != nil {
		out.Gate = stepsOf(*info.Evidence)
	}
	return &of[CapabilityInfo]{out}, nil
}

func versionOf(v capability.VersionInfo) CapabilityVersion {
	return CapabilityVersion{
		Version: v.Version, Hash: v.Hash, State: v.State, CreatedBy: v.CreatedBy, Person: v.Person, Model: v.Model, Session: v.Session,
		Created: v.Created, Parent: v.Parent, Note: v.Note, Request: v.Request, Admitted: v.Admitted, Runs: v.Usage.Runs, Succeeded: v.Usage.Succeeded,
	}
}

func stepsOf(e capability.Evidence) []Step {
	steps := []Step{}
	for _, s := range e.Steps {
		steps = append(steps, Step{Step: s.Name, State: string(s.State), Note: s.Note, DurationMS: s.Duration.Milliseconds()})
	}
	return steps
}

func (h *Host) runCapability(ctx context.Context, in *struct {
	CapabilityPath
	Body struct {
		Args json.RawMessage `json:"args,omitempty" doc:"An object"`
	}
},
) (*of[CapabilityRun], error) {
	var x *agent.Execution
	err := h.Capabilities(ctx, func(b Workbench) (err error) {
		if err := b.Ready(ctx); err != nil {
			return problemOf(http.StatusServiceUnavailable, "sandbox", err)
		}
		x, err = b.Executor.Execute(ctx, in.Name, in.Body.Args, "", func(agent.Progress) {})
		return err
	})
	if err != nil {
		return nil, capabilityProblem(err)
	}
	h.hub.publish("capabilities", struct{}{}) // it is proven now, perhaps
	detail, err := json.Marshal(x)
	if err != nil {
		return nil, problemOf(http.StatusInternalServerError, "", err)
	}
	return &of[CapabilityRun]{CapabilityRun{
		Status: string(x.Outcome), Version: x.Version, Output: x.Text, Stdout: x.Stdout, Stderr: x.Stderr,
		DurationMS: x.Duration.Milliseconds(), Notes: append([]string{}, x.Notes...), Detail: detail,
		File: x.File, Files: resultFiles(x.Files), Warm: x.Warm,
	}}, nil
}

func (h *Host) editCapability(ctx context.Context, in *struct {
	CapabilityPath
	Body struct {
		Definition json.RawMessage `json:"definition" doc:"As registerCapability takes it; its name is that of the address"`
		Code       string          `json:"code"`
		Version    string          `json:"version,omitempty" maxLength:"100" doc:"The one that was edited; another one meanwhile is not replaced. Left out: it is not compared"`
	}
},
) (*of[CapabilityAdmission], error) {
	definition, err := capability.ParseDefinition(in.Body.Definition)
	if err == nil && definition.Name != in.Name {
		err = &capability.Refusal{Step: capability.StepShape, Message: "definition.name is not the name of the capability that is edited", Hint: "keep the name"}
	}
	if err != nil {
		return nil, capabilityProblem(err)
	}
	var admission *capability.Admission
	err = h.Capabilities(ctx, func(b Workbench) error {
		info, err := b.Registry.Show(ctx, in.Name)
		if err != nil {
			return err
		}
		if in.Body.Version != "" && in.Body.Version != info.Version {
			return &Problem{
				Title: http.StatusText(http.StatusConflict), Status: http.StatusConflict, Code: "changed",
				Detail: "there is a newer version by now: " + info.Version, Hint: "look at it, and edit that one",
			}
		}
		admission, err = b.Registry.Register(ctx, definition, in.Body.Code, b.By, nil)
		return err
	})
	if err != nil {
		return nil, capabilityProblem(err)
	}
	h.hub.publish("capabilities", struct{}{})
	return &of[CapabilityAdmission]{CapabilityAdmission{
		admission.Version, admission.Status, stepsOf(admission.Evidence), admission.Warnings, admission.Command,
	}}, nil
}
