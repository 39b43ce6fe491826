package capability

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// grant says what v may reach now, by its definition, policy and approvals.
func (r *Registry) grant(ctx context.Context, v *version) (sandbox.Grant, []string, error) {
	p := v.Definition.Permissions
	if p == nil && v.Lenient {
		return r.grantOld(ctx, v)
	}
	if p == nil {
		return sandbox.Grant{}, nil, nil
	}
	waiting, err := r.allow(ctx, Question{Name: v.Name, Capability: v.Definition.Capability, Version: v.Version, Hash: v.Hash, Grants: grantsOf(p)})
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return sandbox.Grant{}, nil, &RefusedError{v.Name, v.Version, err}
	case err != nil:
		return sandbox.Grant{}, nil, err
	case !waiting.None():
		return sandbox.Grant{}, nil, &PendingError{v.Name, v.Version, waiting, approveCommand(v.Name)}
	}
	return grantFor(p), nil, nil
}

// grantOld is the grant of a capability in the seed's format: the workspace,
// and, once a person has approved the workspace, the hosts of the settings, or
// any public host where those name none.
func (r *Registry) grantOld(ctx context.Context, v *version) (sandbox.Grant, []string, error) {
	if !seemsToUseNetwork(v.Source) {
		return sandbox.Grant{}, nil, nil
	}
	note := func(text string) (sandbox.Grant, []string, error) {
		return sandbox.Grant{}, []string{fmt.Sprintf("%s runs without network: %s", v.Name, text)}, nil
	}
	policy := r.opts.Policy
	hosts := slices.DeleteFunc(slices.Clone(policy.AllowedDomains), func(h string) bool { return sandbox.CheckHost(h) != nil })
	switch {
	case policy.Network == NetworkDeny:
		return note("it is switched off in the settings (sandbox.policy.network)")
	case len(hosts) == 0 && len(policy.AllowedDomains) > 0:
		return note("none of sandbox.allowedDomains can be granted")
	case len(hosts) == 0:
		hosts = []string{sandbox.AnyHost}
	}
	approved, err := r.workspaceApproved(ctx, hosts)
	if err != nil {
		return sandbox.Grant{}, nil, err
	}
	if !approved {
		return note("nobody has allowed it for this older workspace; a person can, with: tendril capability approve --workspace")
	}
	return sandbox.Grant{Net: hosts}, nil, nil
}

// workspaceApproved reports whether a person has allowed network access for the
// capabilities of an old workspace, and asks once where somebody is there.
func (r *Registry) workspaceApproved(ctx context.Context, hosts []string) (bool, error) {
	approved, err := r.approved(ctx, "")
	if err != nil || slices.Contains(approved, anyHost) {
		return err == nil, err
	}
	if once := r.allowed.get(""); len(once) > 0 || len(denials(ctx).get("")) > 0 || r.approver(ctx) == nil {
		return len(once) > 0, nil
	}
	grants := grantsOf(nil)
	grants.Net = hosts
	answer, err := r.opts.Approver.Approve(ctx, Question{
		Capability: "the capabilities of this older workspace, which declare no hosts", Grants: grants, New: Wants{Hosts: hosts},
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("ask for network access of the workspace: %w", err)
	case answer == AllowAlways:
		return true, r.recordApproval(ctx, "", []string{anyHost})
	case answer == AllowOnce:
		r.allowed.add("", []string{anyHost})
		return true, nil
	}
	denials(ctx).add("", []string{anyHost})
	return false, nil
}
