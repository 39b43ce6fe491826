package agent

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
	return &total
}
