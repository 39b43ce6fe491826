package agent

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/sandbox"
)

// HandedOut remembers the values of secrets, so that no later result tells one
// that an earlier run has left in a file, say.
type HandedOut struct {
	mu     sync.Mutex
	asked  bool // the secrets that were granted before this process began are among them
	values map[string]string
	older  int // values that were replaced since
}

func (x *Executor) handedOut() *HandedOut {
	if x.Handed != nil {
		return x.Handed
	}
	return &x.own
}

// secrets are the values for a run, and all that its results must not hold.
func (x *Executor) secrets(ctx context.Context, v *capability.Runnable) (given, hide map[string]string, err error) {
	h := x.handedOut()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := x.recall(ctx, h); err != nil {
		return nil, nil, err
	}
	given = map[string]string{}
	for _, name := range v.Secrets {
		value, err := x.value(ctx, name)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("the secret %s cannot be read: %w", name, err)
		case value == "":
			return nil, nil, fmt.Errorf("it needs the secret %s, which is not set; the user can keep it with: tendril secret set %s", name, name)
		case len(value) < sandbox.MinSecret:
			return nil, nil, fmt.Errorf("the secret %s is shorter than %d characters, so it could not be kept out of results; the user can set another one with: tendril secret set %s", name, sandbox.MinSecret, name)
		case strings.ContainsRune(value, 0):
			return nil, nil, fmt.Errorf("the secret %s holds a NUL, which no environment can carry", name)
		}
		given[name] = value
		h.add(name, value)
	}
	return given, maps.Clone(h.values), nil
}

// recall looks up, once, the secrets that capabilities of this workspace were
// granted before: their files may hold them.
func (x *Executor) recall(ctx context.Context, h *HandedOut) error {
	if h.asked || x.Secrets == nil {
		return nil
	}
	uses, err := x.Registry.SecretUses(ctx)
	if err != nil {
		return err
	}
	for name := range uses {
		if value, err := x.value(ctx, name); err == nil && value != "" { // one that cannot be read was not given to anybody either
			h.add(name, value)
		}
	}
	h.asked = true
	return nil
}

func (x *Executor) value(ctx context.Context, name string) (string, error) {
	if x.Secrets == nil {
		return "", nil
	}
	return x.Secrets.Value(ctx, name)
}

// add keeps a value, and one that it replaces as well.
func (h *HandedOut) add(name, value string) {
	if h.values == nil {
		h.values = map[string]string{}
	}
	if before, ok := h.values[name]; ok && before != value {
		h.older++
		h.values[fmt.Sprintf("%s, an earlier value (%d)", name, h.older)] = before
	}
	h.values[name] = value
}

// warmer is a Runner that can start what the next run needs before it comes.
type warmer interface{ Warm(job sandbox.Job) }

// warm gets a version that was just registered ready to run. It asks nobody, and
// what keeps it from running is told when it is run.
func (x *Executor) warm(ctx context.Context, a *capability.Admission) {
	w, ok := x.Runner.(warmer)
	if !ok || a.Status == capability.StatusPending {
		return
	}
	v, err := x.Registry.Resolve(capability.Unattended(ctx), a.Name, nil)
	if err != nil {
		return
	}
	secrets, _, err := x.secrets(ctx, v)
	if err != nil {
		return
	}
	w.Warm(sandbox.Job{
		Name: v.Name, Source: v.Source, Lock: v.Lock, Workspace: x.Workspace, Grant: v.Grant, Limits: x.Limits.Narrowed(v.Limits), Secrets: secrets,
	})
}
