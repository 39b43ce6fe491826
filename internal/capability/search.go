package capability

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unique"
)

// The weight of a word by the field that it stands in. Suppression counts
// against.
const (
	weightName        = 3
	weightCapability  = 2
	weightTriggers    = 2
	weightParameters  = 1
	weightSuppression = -1
)

// stopWords say nothing about what is wanted.
const stopWords = " a an and are as at be by for from has in is it its of on or that the this to user what when which with "

// tokens splits a text into words: lower case, without endings of plurals.
func tokens(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	out := words[:0]
	for _, w := range words {
		if strings.Contains(stopWords, " "+w+" ") {
			continue
		}
		if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			w = w[:len(w)-1]
		}
		out = append(out, w)
	}
	return out
}

// term is a word of a capability, and how much it counts.
type term struct {
	word   unique.Handle[string] // most words are those of many capabilities
	weight float64
}

// rank sorts entries by how well they fit the words of a query, best first, and
// returns how many fit at all. A word counts by how rare it is and, in each
// entry, by the fields that hold it, with less and less for each more.
func rank(all []*entry, query []string) int {
	slices.Sort(query)
	query = slices.Compact(query)
	scores := make(map[*entry]float64, len(all))
	weights := make([]float64, len(all))
	for _, q := range query {
		word, frequency := unique.Make(q), 0
		for i, e := range all {
			if weights[i] = e.weight(word); weights[i] > 0 {
				frequency++
			}
		}
		rarity := math.Log(1 + float64(len(all))/(1+float64(frequency)))
		for i, e := range all {
			if w := weights[i]; w != 0 {
				scores[e] += rarity * w / (math.Abs(w) + 2)
			}
		}
	}
	matches := 0
	for _, score := range scores {
		if score > 0 {
			matches++
		}
	}
	slices.SortStableFunc(all, func(a, b *entry) int { return cmp.Compare(scores[b], scores[a]) })
	return matches
}

// weight is how much a word counts in an entry; 0: it does not hold it.
func (e *entry) weight(word unique.Handle[string]) float64 {
	for _, t := range e.terms() {
		if t.word == word {
			return t.weight
		}
	}
	return 0
}

// termsOf finds the words of a definition, when they are first needed.
func termsOf(def *Definition) func() []term {
	return sync.OnceValue(func() []term {
		weights := weigh(summarize(&entry{def: *def}, nil))
		terms := make([]term, 0, len(weights))
		for word, weight := range weights {
			terms = append(terms, term{unique.Make(word), weight})
		}
		return terms
	})
}

func weigh(s Summary) map[string]float64 {
	weights := map[string]float64{}
	add := func(text string, weight float64) {
		for _, w := range tokens(text) {
			weights[w] += weight
		}
	}
	add(s.Name, weightName)
	add(s.Capability, weightCapability)
	for _, t := range s.Triggers {
		add(t, weightTriggers)
	}
	for _, t := range s.Suppression {
		add(t, weightSuppression)
	}
	var schema struct {
		Properties map[string]struct {
			Description string `json:"description"`
		} `json:"properties"`
	}
	if json.Unmarshal(s.Parameters, &schema) == nil { // else: no words
		for name, property := range schema.Properties {
			add(name+" "+property.Description, weightParameters)
		}
	}
	return weights
}
