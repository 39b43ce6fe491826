package capability

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"
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

// rank sorts summaries by how well they fit the words of a query, best first,
// and returns how many fit at all. A word counts by how rare it is and, in each
// summary, by the fields that hold it, with less and less for each more.
func rank(all []Summary, query []string) int {
	slices.Sort(query)
	query = slices.Compact(query)
	weights := make([]map[string]float64, len(all))
	frequency := map[string]int{}
	for i, s := range all {
		weights[i] = weigh(s)
		for _, w := range query {
			if weights[i][w] > 0 {
				frequency[w]++
			}
		}
	}
	type scored struct {
		Summary
		score float64
	}
	list := make([]scored, len(all))
	matches := 0
	for i, s := range all {
		list[i].Summary = s
		for _, w := range query {
			rarity := math.Log(1 + float64(len(all))/(1+float64(frequency[w])))
			weight := weights[i][w]
			list[i].score += rarity * weight / (math.Abs(weight) + 2)
		}
		if list[i].score > 0 {
			matches++
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	for i := range list {
		all[i] = list[i].Summary
	}
	return matches
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
