package agent

import (
	"context"
	"fmt"
	"math"
)

// Price is what the tokens of a model cost, in USD for a million of them. What
// is nil is not known.
type Price struct {
	Input, Output         *float64
	CacheRead, CacheWrite *float64
}

// Cost is what usage costs in USD. It is nil when a price that it needs is not
// known: an unknown cost is not zero.
func (p Price) Cost(u Usage) *float64 {
	total := 0.0
	if u == (Usage{}) && !p.free() {
		return nil // nothing was counted, but something was read and written
	}
	for _, part := range []struct {
		tokens int64
		price  *float64
	}{{u.Input, p.Input}, {u.Output, p.Output}, {u.CacheRead, p.CacheRead}, {u.CacheWrite, p.CacheWrite}} {
		if part.tokens == 0 {
			continue
		}
		if part.price == nil {
			return nil
		}
		total += float64(part.tokens) / 1e6 * *part.price
	}
	total = math.Round(total*1e9) / 1e9 // without what binary fractions add
	return &total
}

// free says that neither input nor output costs anything.
func (p Price) free() bool {
	return p.Input != nil && *p.Input == 0 && p.Output != nil && *p.Output == 0
}

// maxTokens is more than any request and reply have together.
const maxTokens = 1e9

// believable reports whether u can be what a provider counted.
func (u Usage) believable() bool {
	for _, tokens := range []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite} {
		if tokens < 0 || tokens > maxTokens {
			return false
		}
	}
	return true
}

// bill sums what the model calls of a turn took.
type bill struct {
	usage   Usage
	usd     float64 // the known part
	known   bool    // some of it is known
	unknown bool    // some of it is not
	missed  int     // whole replies whose cost is not known
}

// add counts one reply and returns its cost, nil when unknown, and whether that
// is only the least: an interrupted reply was not counted to its end.
func (b *bill) add(r reply, price Price) (usd *float64, partial bool) {
	b.usage = b.usage.Add(r.usage)
	usd = price.Cost(r.usage)
	partial = r.finish == "" && !price.free()
	b.unknown = b.unknown || usd == nil || partial
	if usd != nil {
		b.usd += *usd
		b.known = true
	} else if !partial {
		b.missed++
	}
	return usd, usd != nil && partial
}

// unanswered counts a request that was given up before anything of a reply came:
// the provider may bill it.
func (b *bill) unanswered(price Price) { b.unknown = b.unknown || !price.free() }

// cost is the sum, nil when nothing is known, and whether some of it is not.
func (b *bill) cost() (usd *float64, partial bool) {
	if !b.known {
		return nil, b.unknown
	}
	sum := math.Round(b.usd*1e9) / 1e9
	return &sum, b.unknown
}

// account shows and sums what a reply took. A request that was refused before a
// reply began took nothing.
func (t *turn) account(r reply) {
	if !r.began {
		return
	}
	if !r.usage.believable() {
		r.usage = Usage{}
	}
	usd, partial := t.bill.add(r, t.agent.facts.Price)
	if r.usage == (Usage{}) {
		return
	}
	usage := r.usage
	t.emit(Event{
		Type: UsageReported, Usage: &usage, CostUSD: usd, CostPartial: partial,
		ContextTokens: r.usage.Context(), ContextWindow: t.agent.facts.ContextWindow,
	})
}

// spend says whether there is any budget.
func (l Limits) spend() bool { return l.BudgetUSD > 0 || l.SessionUSD > 0 || l.DayUSD > 0 }

// overspent names the budget that is used up, if one is.
func (t *turn) overspent(ctx context.Context) (budget string, err error) {
	l := t.agent.limits
	switch {
	case l.BudgetUSD > 0 && t.bill.usd >= l.BudgetUSD:
		return "turn", nil
	case l.SessionUSD > 0 && t.earlier+t.bill.usd >= l.SessionUSD:
		return "session", nil
	case l.DayUSD > 0:
		today, err := t.agent.spent.Today(ctx)
		if err != nil {
			return "", fmt.Errorf("what was spent today cannot be read, so nothing more is: %w", err)
		}
		if today >= l.DayUSD {
			return "day", nil
		}
	}
	return "", nil
}

// missedNote says at the end so when a budget did not hold.
func (t *turn) missedNote() string {
	if !t.agent.limits.spend() || t.bill.missed == 0 || t.budgetNote() != "" {
		return ""
	}
	return fmt.Sprintf("the budget did not count %d of %d model calls: the provider sent no usable figures of tokens, or their price is not known",
		t.bill.missed, t.steps)
}

// budgetNote says at the start so when a budget is set that cannot hold.
func (t *turn) budgetNote() string {
	price := t.agent.facts.Price
	if !t.agent.limits.spend() || price.Input != nil && price.Output != nil {
		return ""
	}
	return fmt.Sprintf("the budget cannot hold, because the price of %s is not known", t.agent.model.Name())
}
