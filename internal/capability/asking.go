package capability

import "context"

type askingKey struct{}

// Asking makes the policy for the network at least [NetworkAsk] for what is done
// with the context that it returns. It never makes a policy laxer.
func Asking(ctx context.Context) context.Context { return context.WithValue(ctx, askingKey{}, true) }

// network is the policy that holds in ctx.
func (p Policy) network(ctx context.Context) Network {
	if ctx.Value(askingKey{}) != nil && p.Network != NetworkDeny {
		return NetworkAsk
	}
	return p.Network
}

type denialsKey struct{}

// InTurn returns a context in which a person who said no is not asked the same
// again. The next turn may ask.
func InTurn(ctx context.Context) context.Context {
	return context.WithValue(ctx, denialsKey{}, &answers{})
}

// denials are what was denied in the turn of ctx; nil outside of turns.
func denials(ctx context.Context) *answers {
	a, _ := ctx.Value(denialsKey{}).(*answers)
	return a
}

type unattendedKey struct{}

// Unattended returns a context in which nobody is asked: what needs a person
// waits for one.
func Unattended(ctx context.Context) context.Context {
	return context.WithValue(ctx, unattendedKey{}, true)
}

// approver is who can be asked in ctx; nil for nobody.
func (r *Registry) approver(ctx context.Context) Approver {
	if ctx.Value(unattendedKey{}) != nil {
		return nil
	}
	return r.opts.Approver
}
