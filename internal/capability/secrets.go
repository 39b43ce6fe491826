package capability

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// maxSecrets bounds the secrets of one capability.
const maxSecrets = 16

// Wants is what a person is asked about.
type Wants struct {
	Hosts []string `json:"hosts"`
	// Secrets are names of secrets that it would get.
	Secrets []string `json:"secrets"`
}

// None reports whether nothing is asked.
func (w Wants) None() bool { return len(w.Hosts)+len(w.Secrets) == 0 }

// String is "network access to a.example.com" and "the secret TOKEN", or both.
func (w Wants) String() string {
	var parts []string
	if len(w.Hosts) > 0 {
		parts = append(parts, "network access to "+strings.Join(HostNames(w.Hosts), ", "))
	}
	if len(w.Secrets) > 0 {
		parts = append(parts, secretsText(w.Secrets))
	}
	return strings.Join(parts, ", and ")
}

func secretsText(names []string) string {
	if len(names) == 1 {
		return "the secret " + names[0]
	}
	return "the secrets " + strings.Join(names, ", ")
}

// An approval of a secret is for one capability, and for the hosts that it may
// talk to with it. It is kept among the approvals of hosts, as
// "secret:NAME@host" for each of the hosts, or "secret:NAME" where there are none.
const secretPrefix = "secret:"

// secretItems are the approvals that secrets need.
func secretItems(secrets, hosts []string) []string {
	var items []string
	for _, name := range secrets {
		if len(hosts) == 0 {
			items = append(items, secretPrefix+name)
		}
		for _, host := range hosts {
			items = append(items, secretPrefix+name+"@"+host)
		}
	}
	return items
}

// splitApprovals sorts approvals: the hosts, and by secret the hosts that it may
// be used with.
func splitApprovals(items []string) (hosts []string, secrets map[string][]string) {
	secrets = map[string][]string{}
	for _, item := range items {
		rest, ok := strings.CutPrefix(item, secretPrefix)
		if !ok {
			hosts = append(hosts, item)
			continue
		}
		name, host, with := strings.Cut(rest, "@")
		if secrets[name] == nil {
			secrets[name] = []string{}
		}
		if with {
			secrets[name] = append(secrets[name], host)
		}
	}
	return hosts, secrets
}

// unapproved are the secrets that nobody has allowed yet, or not with all of
// these hosts.
func unapproved(approved, secrets, hosts []string) []string {
	_, known := splitApprovals(approved)
	var names []string
	for _, name := range secrets {
		allowed, ok := known[name]
		if !ok || len(uncovered(allowed, hosts)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// checkSecrets judges the names of secrets, whatever policy says.
func (r *Registry) checkSecrets(p *Permissions) (faults []string) {
	if p == nil {
		return nil
	}
	if len(p.Secrets) > maxSecrets {
		return []string{fmt.Sprintf("definition.permissions.secrets has %d entries; at most %d are allowed", len(p.Secrets), maxSecrets)}
	}
	for i, name := range p.Secrets {
		at := fmt.Sprintf("definition.permissions.secrets[%d]: ", i)
		switch {
		case slices.Contains(p.Secrets[:i], name):
			faults = append(faults, at+"it is there twice")
		case r.opts.Reserved != nil && r.opts.Reserved(name):
			faults = append(faults, at+name+" is a key of Tendril's own, which no capability gets; have the user keep another secret under a name of its own")
		default:
			if err := sandbox.CheckSecretName(name); err != nil {
				faults = append(faults, at+err.Error())
			}
		}
	}
	return faults
}

// SecretUses tells, by name of a secret, which capabilities of this workspace a
// person has allowed to use it, sorted.
func (r *Registry) SecretUses(ctx context.Context) (map[string][]string, error) {
	approved, _, err := r.decided(ctx)
	if err != nil {
		return nil, err
	}
	uses := map[string][]string{}
	for capability, items := range approved {
		_, secrets := splitApprovals(items)
		for name := range secrets {
			uses[name] = append(uses[name], capability)
		}
	}
	for _, names := range uses {
		slices.Sort(names)
	}
	return uses, nil
}

// approvedSecrets words the approvals of secrets, sorted: "TOKEN with
// api.example.com".
func approvedSecrets(items []string) []string {
	_, secrets := splitApprovals(items)
	texts := []string{}
	for name, hosts := range secrets {
		text := name
		if len(hosts) > 0 {
			text += " with " + strings.Join(hosts, ", ")
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return texts
}
