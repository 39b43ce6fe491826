package host

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tendril-agent/tendril/internal/capability"
)

// Finding is something that is wrong with the registry.
type Finding struct {
	Severity string `json:"severity" enum:"error,warning,note" doc:"error: something does not run or is damaged; warning: what runs is not what stands in the files"`
	Name     string `json:"name,omitempty" doc:"Of the capability"`
	Problem  string `json:"problem"`
	Mend     string `json:"mend" doc:"What mends it: a command, or what fixRegistry does"`
	Fixable  bool   `json:"fixable" doc:"fixRegistry mends it; the others are for a person to decide"`
}

// Verdict is what the gate says of a capability now.
type Verdict struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Passed  bool     `json:"passed"`
	Problem string   `json:"problem,omitempty" doc:"Why it did not pass; it does not run any more"`
	Gate    []Step   `json:"gate"`
	Damaged []string `json:"damaged" doc:"Other versions that cannot be read"`
}

// Resolved is a capability that was in conflict.
type Resolved struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty" doc:"Left out: it stays deleted"`
}

// ArchivedCapability is one that is kept, and neither listed nor run.
type ArchivedCapability struct {
	Name       string `json:"name"`
	Status     string `json:"status" enum:"archived,deleted"`
	Capability string `json:"capability" doc:"What it does"`
}

// Findings are all that is wrong with the registry.
type Findings struct {
	Findings []Finding `json:"findings" doc:"The worst first"`
}

// Fixed is what was mended, and what is left.
type Fixed struct {
	Mended []Finding `json:"mended"`
	Left   []Finding `json:"left"`
}

// Verdicts are what the gate says now.
type Verdicts struct {
	Verdicts []Verdict `json:"verdicts"`
}

// ResolvedConflict is what became of a conflict.
type ResolvedConflict struct {
	Resolved []Resolved `json:"resolved"`
}

// ArchivedList are the capabilities that can be restored.
type ArchivedList struct {
	Capabilities []ArchivedCapability `json:"capabilities"`
}

func (h *Host) registryAPI(api huma.API) {
	huma.Register(api, op("GET", "/api/registry/findings", "examineRegistry", "Read everything that is kept, and say what is wrong", 200), h.examineRegistry)
	huma.Register(api, op("POST", "/api/registry/fix", "fixRegistry", "Mend what needs no decision", 200), h.fixRegistry)
	huma.Register(api, op("POST", "/api/registry/verify", "verifyCapabilities", "Take capabilities through the gate again", 200), h.verifyCapabilities)
	huma.Register(api, op("POST", "/api/registry/resolve", "resolveConflict", "End a conflict that git left", 200), h.resolveConflict)
	huma.Register(api, op("GET", "/api/registry/archived", "listArchived", "The capabilities that are archived or deleted, and can be restored", 200), h.listArchived)
}

func findingsOf(list []capability.Finding) []Finding {
	out := []Finding{}
	for _, f := range list {
		out = append(out, Finding{string(f.Severity), f.Name, f.Problem, f.Mend, f.Fixable})
	}
	return out
}

func (h *Host) examineRegistry(ctx context.Context, _ *struct{}) (*of[Findings], error) {
	out := &of[Findings]{Findings{[]Finding{}}}
	err := h.onRegistry(ctx, false, func(b Workbench) error {
		found, err := b.Registry.Examine(ctx)
		out.Body.Findings = findingsOf(found)
		return err
	})
	return out, err
}

func (h *Host) fixRegistry(ctx context.Context, _ *Nothing) (*of[Fixed], error) {
	out := &of[Fixed]{}
	err := h.onRegistry(ctx, true, func(b Workbench) error {
		mended, left, err := b.Registry.Fix(ctx)
		out.Body.Mended, out.Body.Left = findingsOf(mended), findingsOf(left)
		return err
	})
	return out, err
}

func (h *Host) verifyCapabilities(ctx context.Context, in *struct {
	Body struct {
		Names []string `json:"names,omitempty" maxItems:"1000" doc:"Left out: all that are not archived"`
	} `required:"false"`
},
) (*of[Verdicts], error) {
	out := &of[Verdicts]{Verdicts{[]Verdict{}}}
	err := h.onRegistry(ctx, true, func(b Workbench) error {
		if err := b.Ready(ctx); err != nil {
			return problemOf(http.StatusServiceUnavailable, "sandbox", err)
		}
		found, err := b.Registry.Verify(ctx, in.Body.Names, nil)
		for _, v := range found {
			out.Body.Verdicts = append(out.Body.Verdicts, Verdict{v.Name, v.Version, v.Passed, v.Problem, stepsOf(v.Evidence), v.Damaged})
		}
		return err
	})
	return out, err
}

func (h *Host) resolveConflict(ctx context.Context, in *struct {
	Body struct {
		Choices   []ConflictChoice `json:"choices,omitempty" maxItems:"1000"`
		Otherwise string           `json:"otherwise,omitempty" enum:"ours,theirs" doc:"Of those without a choice; left out: they must have one answer only"`
	} `required:"false"`
},
) (*of[ResolvedConflict], error) {
	choices := map[string]capability.Choice{}
	for _, c := range in.Body.Choices {
		choices[c.Name] = capability.Choice(c.Take)
	}
	out := &of[ResolvedConflict]{ResolvedConflict{[]Resolved{}}}
	err := h.onRegistry(ctx, true, func(b Workbench) error {
		settled, err := b.Registry.Settle(ctx, choices, capability.Choice(in.Body.Otherwise))
		for name, version := range settled {
			out.Body.Resolved = append(out.Body.Resolved, Resolved{name, version})
		}
		return err
	})
	return out, err
}

// ConflictChoice is the side that a person takes.
type ConflictChoice struct {
	Name string `json:"name" maxLength:"200"`
	Take string `json:"take" enum:"ours,theirs" doc:"ours is the upper side in git's conflict, theirs the lower one"`
}

func (h *Host) listArchived(ctx context.Context, _ *struct{}) (*of[ArchivedList], error) {
	out := &of[ArchivedList]{ArchivedList{[]ArchivedCapability{}}}
	err := h.onRegistry(ctx, false, func(b Workbench) error {
		list, err := b.Registry.Archived(ctx)
		for _, s := range list {
			out.Body.Capabilities = append(out.Body.Capabilities, ArchivedCapability{s.Name, s.Status, s.Capability})
		}
		return err
	})
	return out, err
}
