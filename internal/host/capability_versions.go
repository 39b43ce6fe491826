package host

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tendril-agent/tendril/internal/capability"
)

// CapabilityHistory is what is kept of a capability, newest first.
type CapabilityHistory struct {
	Name     string              `json:"name"`
	Versions []CapabilityVersion `json:"versions"`
}

// CapabilityDiff is how two versions differ.
type CapabilityDiff struct {
	Name       string         `json:"name"`
	From       CapabilitySide `json:"from"`
	To         CapabilitySide `json:"to"`
	Definition string         `json:"definition" doc:"A unified diff of the definitions; empty: they are the same"`
	Source     string         `json:"source" doc:"A unified diff of the sources; empty: they are the same"`
	// Dependencies compares the lists of locked remote modules.
	Dependencies string `json:"dependencies" doc:"A unified diff of the locked dependencies, a line each with its hash; empty: they are the same"`
}

// CapabilitySide is one of the two that are compared.
type CapabilitySide struct {
	Label   string `json:"label" doc:"A version, or the path of the file"`
	Version string `json:"version,omitempty"`
	Hash    string `json:"sha256,omitempty"`
}

// CapabilityRestored is what was brought back.
type CapabilityRestored struct {
	What     string   `json:"what" enum:"archived,deleted,file"`
	Version  string   `json:"version" doc:"That is active now"`
	Kept     string   `json:"kept,omitempty" doc:"The version that holds what a person had written into the file"`
	Status   string   `json:"status" enum:"active,unproven,pending"`
	Warnings []string `json:"warnings"`
}

func (h *Host) versionsAPI(api huma.API) {
	const at = "/api/capabilities/{name}"
	huma.Register(api, op("GET", at+"/history", "getHistory", "The versions and deletions of a capability, newest first", 200), h.getHistory)
	huma.Register(api, op("GET", at+"/diff", "getDiff", "How two versions differ, or an edit of the file from what runs", 200), h.getDiff)
	huma.Register(api, op("POST", at+"/rollback", "rollbackCapability", "Make an earlier version active, under a new number", 200), h.rollbackCapability)
	huma.Register(api, op("POST", at+"/update", "updateCapability", "Take the newest dependencies that its imports allow, through the gate", 200), h.updateCapability)
	huma.Register(api, op("POST", at+"/accept", "acceptCapability", "Make the edit of tools/{name}.ts a version, through the gate", 200), h.acceptCapability)
	huma.Register(api, op("POST", at+"/restore", "restoreCapability", "Bring back an archived or deleted capability, or its file as it was", 200), h.restoreCapability)
	huma.Register(api, op("POST", at+"/archive", "archiveCapability", "Put a capability away: it is kept, and neither listed nor run", 204), h.archiveCapability)
	huma.Register(api, op("DELETE", at, "deleteCapability", "Remove a capability; its versions stay, and it can be restored", 204), h.deleteCapability)
}

// onRegistry does something with the registry, and tells every client if it may
// have changed.
func (h *Host) onRegistry(ctx context.Context, changes bool, do func(Workbench) error) error {
	if err := h.Capabilities(ctx, do); err != nil {
		return capabilityProblem(err)
	}
	if changes {
		h.hub.publish("capabilities", struct{}{})
	}
	return nil
}

func (h *Host) getHistory(ctx context.Context, in *CapabilityPath) (*of[CapabilityHistory], error) {
	out := CapabilityHistory{Name: in.Name, Versions: []CapabilityVersion{}}
	err := h.onRegistry(ctx, false, func(b Workbench) error {
		versions, err := b.Registry.History(ctx, in.Name)
		for _, v := range versions {
			out.Versions = append(out.Versions, versionOf(v))
		}
		return err
	})
	return &of[CapabilityHistory]{out}, err
}

func (h *Host) getDiff(ctx context.Context, in *struct {
	CapabilityPath
	From string `query:"from" maxLength:"100" doc:"A version, the beginning of a hash, active, pending or file"`
	To   string `query:"to" maxLength:"100" doc:"Likewise; without both: what a person would decide next"`
},
) (*of[CapabilityDiff], error) {
	var out CapabilityDiff
	err := h.onRegistry(ctx, false, func(b Workbench) error {
		d, err := b.Registry.Diff(ctx, in.Name, in.From, in.To)
		if err != nil {
			return err
		}
		out = CapabilityDiff{
			d.Name, CapabilitySide{d.From.Label, d.From.Version, d.From.Hash}, CapabilitySide{d.To.Label, d.To.Version, d.To.Hash}, d.Definition, d.Source, d.Dependencies,
		}
		return nil
	})
	return &of[CapabilityDiff]{out}, err
}

func (h *Host) rollbackCapability(ctx context.Context, in *struct {
	CapabilityPath
	Body struct {
		Version string `json:"version,omitempty" maxLength:"100" doc:"Left out: the last one before the active one that is another"`
	} `required:"false"`
},
) (*of[CapabilityAdmission], error) {
	var admission *capability.Admission
	err := h.onRegistry(ctx, true, func(b Workbench) (err error) {
		admission, err = b.Registry.Rollback(ctx, in.Name, in.Body.Version, b.By, nil)
		return err
	})
	return admissionOf(admission, err)
}

func (h *Host) updateCapability(ctx context.Context, in *CapabilityPath) (*of[CapabilityAdmission], error) {
	var admission *capability.Admission
	err := h.onRegistry(ctx, true, func(b Workbench) (err error) {
		admission, err = b.Registry.Update(ctx, in.Name, b.By, nil)
		return err
	})
	return admissionOf(admission, err)
}

func (h *Host) acceptCapability(ctx context.Context, in *struct {
	CapabilityPath
	Body struct {
		Override bool `json:"override,omitempty" doc:"Although its type check fails"`
	} `required:"false"`
},
) (*of[CapabilityAdmission], error) {
	var admission *capability.Admission
	err := h.onRegistry(ctx, true, func(b Workbench) (err error) {
		admission, err = b.Registry.Accept(ctx, in.Name, capability.Acceptance{By: b.By, Override: in.Body.Override}, nil)
		return err
	})
	return admissionOf(admission, err)
}

func admissionOf(a *capability.Admission, err error) (*of[CapabilityAdmission], error) {
	if err != nil {
		return nil, err
	}
	return &of[CapabilityAdmission]{CapabilityAdmission{a.Version, a.Status, stepsOf(a.Evidence), a.Warnings, a.Command}}, nil
}

func (h *Host) restoreCapability(ctx context.Context, in *struct {
	CapabilityPath
	Nothing
},
) (*of[CapabilityRestored], error) {
	var done *capability.Restored
	err := h.onRegistry(ctx, true, func(b Workbench) (err error) {
		done, err = b.Registry.Restore(ctx, in.Name, b.By, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &of[CapabilityRestored]{CapabilityRestored{done.What, done.Version, done.Kept, done.Status, done.Warnings}}, nil
}

func (h *Host) archiveCapability(ctx context.Context, in *struct {
	CapabilityPath
	Nothing
},
) (*struct{}, error) {
	return nil, h.onRegistry(ctx, true, func(b Workbench) error { return b.Registry.Archive(ctx, in.Name) })
}

func (h *Host) deleteCapability(ctx context.Context, in *CapabilityPath) (*struct{}, error) {
	return nil, h.onRegistry(ctx, true, func(b Workbench) error { return b.Registry.Delete(ctx, in.Name, b.By) })
}
