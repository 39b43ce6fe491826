package capability

import (
	"errors"
	"slices"
	"testing"
)

// A secret is asked about whatever policy says, once for a capability and the
// hosts that it may be sent to.
func TestSecrets_Asked(t *testing.T) {
	opts := testOptions(t)
	p := &person{answer: AllowAlways}
	opts.Approver = p
	opts.Reserved = func(name string) bool { return name == "OPENAI_API_KEY" }
	r := openWith(t, opts)
	submit := func(name, code string, permissions Permissions) error {
		def := definition(name)
		def.Permissions = &permissions
		_, err := r.Register(t.Context(), def, code, Provenance{}, nil)
		return err
	}
	for _, step := range []struct {
		what        string
		name        string
		permissions Permissions
		asks        []string // secrets; nil: nothing is asked
	}{
		{"first", "x", Permissions{Net: []string{"a.com"}, Secrets: []string{"TOKEN"}}, []string{"TOKEN"}},
		{"the same", "x", Permissions{Net: []string{"a.com"}, Secrets: []string{"TOKEN"}}, nil},
		{"no host", "x", Permissions{Secrets: []string{"TOKEN"}}, nil},
		{"another host", "x", Permissions{Net: []string{"a.com", "b.com"}, Secrets: []string{"TOKEN"}}, []string{"TOKEN"}},
		{"another secret", "x", Permissions{Net: []string{"a.com"}, Secrets: []string{"TOKEN", "OTHER"}}, []string{"OTHER"}},
		{"another capability", "y", Permissions{Net: []string{"a.com"}, Secrets: []string{"TOKEN"}}, []string{"TOKEN"}},
		{"any host", "y", Permissions{Net: []string{"*"}, Secrets: []string{"TOKEN"}}, []string{"TOKEN"}},
	} {
		p.asked = nil
		if err := submit(step.name, "// "+step.what, step.permissions); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		var asked []string
		for _, q := range p.asked {
			asked = append(asked, q.New.Secrets...)
			if !slices.Equal(q.Net, step.permissions.Net) && len(step.permissions.Net) > 0 {
				t.Errorf("%s: the question shows the hosts %v", step.what, q.Net)
			}
		}
		if !slices.Equal(asked, step.asks) {
			t.Errorf("%s: asked about %v, want %v", step.what, asked, step.asks)
		}
	}
	if v := resolve(t, r, "x"); !slices.Equal(v.Secrets, []string{"TOKEN", "OTHER"}) {
		t.Errorf("%v", v.Secrets)
	}
	uses, err := r.SecretUses(t.Context())
	if err != nil || !slices.Equal(uses["TOKEN"], []string{"x", "y"}) || !slices.Equal(uses["OTHER"], []string{"x"}) {
		t.Errorf("%v, %v", uses, err)
	}
	var refusal *Refusal
	if err := submit("z", "1", Permissions{Secrets: []string{"OPENAI_API_KEY"}}); !errors.As(err, &refusal) {
		t.Errorf("a key of our own: %v", err)
	}

	p.answer, p.asked = Deny, nil
	if err := submit("z", "1", Permissions{Secrets: []string{"TOKEN"}}); !errors.As(err, &refusal) || !slices.Equal(refusal.Denied, []string{"TOKEN"}) {
		t.Errorf("denied: %v", err)
	}
	if _, err := r.Revoke(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	opts.Approver = nil
	var pending *PendingError
	if _, err := openWith(t, opts).Resolve(t.Context(), "x", nil); !errors.As(err, &pending) || !slices.Equal(pending.Wants.Secrets, []string{"TOKEN", "OTHER"}) {
		t.Errorf("revoked: %v", err)
	}
	if _, err := openWith(t, opts).Approve(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	resolve(t, openWith(t, opts), "x")
}
