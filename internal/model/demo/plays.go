package demo

import (
	_ "embed" // the capabilities
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
)

// play is one prompt and how the demo serves it.
type play struct {
	prompt     string
	query      string
	name       string
	definition []byte
	code       []string // attempts: each but the last is refused by the gate
	args       map[string]any
	answer     func(output string) string
}

var (
	//go:embed plays/count_words.json
	countWordsDefinition []byte
	//go:embed plays/count_words.ts
	countWords string
	//go:embed plays/sum_by_category.json
	sumByCategoryDefinition []byte
	//go:embed plays/sum_by_category.ts
	sumByCategory string
	//go:embed plays/list_open_tasks.json
	listOpenTasksDefinition []byte
	//go:embed plays/list_open_tasks.ts
	listOpenTasks string
)

var plays = []play{
	{
		prompt: "How many words are in my text files?", query: "count words in text files", name: "count_words",
		definition: countWordsDefinition, code: []string{countWords}, args: map[string]any{}, answer: answerWords,
	},
	{
		prompt: "What did I spend per category?", query: "sum expenses by category from a CSV file", name: "sum_by_category",
		definition: sumByCategoryDefinition, code: []string{wrongType(sumByCategory), sumByCategory},
		args: map[string]any{"file": "expenses.csv", "group": "category", "value": "amount"}, answer: answerSums,
	},
	{
		prompt: "Which tasks are still open?", query: "list open tasks in Markdown files", name: "list_open_tasks",
		definition: listOpenTasksDefinition, code: []string{listOpenTasks}, args: map[string]any{}, answer: answerTasks,
	},
}

// wrongType is a first attempt as a model makes it: the gate's type check
// refuses it.
func wrongType(code string) string {
	return strings.Replace(code, "new Map<string, number>()", "new Map<string, string>()", 1)
}

// find looks a prompt up, whatever its case, spacing and final punctuation.
func find(prompt string) (play, bool) {
	for _, p := range plays {
		if normal(p.prompt) == normal(prompt) {
			return p, true
		}
	}
	return play{}, false
}

func normal(s string) string {
	return strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(s), " ")), "?!. ")
}

func (p play) register(attempt int) *agent.Call {
	return newCall(agent.RegisterTool, map[string]any{"definition": json.RawMessage(p.definition), "code": p.code[attempt]})
}

func (p play) execute() *agent.Call {
	return newCall(agent.ExecuteTool, map[string]any{"name": p.name, "args": p.args})
}

// The answers are read from the output. One of another shape, as an edited
// capability may give, is shown as it is.

func answerWords(output string) string {
	var r struct {
		Total *int `json:"total"`
		Files []struct {
			File  string `json:"file"`
			Words int    `json:"words"`
		} `json:"files"`
	}
	if json.Unmarshal([]byte(output), &r) != nil || r.Total == nil {
		return plain(output)
	}
	if len(r.Files) == 0 {
		return "There are no text files (.md, .txt) in the workspace."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s with %s in all:\n", count(len(r.Files), "text file"), count(*r.Total, "word"))
	for _, f := range r.Files {
		fmt.Fprintf(&b, "- %s: %d\n", f.File, f.Words)
	}
	return strings.TrimSpace(b.String())
}

func answerSums(output string) string {
	var r struct {
		Total  *json.Number `json:"total"`
		Groups []struct {
			Name string      `json:"name"`
			Sum  json.Number `json:"sum"`
		} `json:"groups"`
	}
	if json.Unmarshal([]byte(output), &r) != nil || r.Total == nil {
		return plain(output)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "You spent %s in all:\n", *r.Total)
	for _, g := range r.Groups {
		fmt.Fprintf(&b, "- %s: %s\n", g.Name, g.Sum)
	}
	return strings.TrimSpace(b.String())
}

func answerTasks(output string) string {
	var r struct {
		Open *[]struct {
			File string `json:"file"`
			Line int    `json:"line"`
			Text string `json:"text"`
		} `json:"open"`
		Done int `json:"done"`
	}
	if json.Unmarshal([]byte(output), &r) != nil || r.Open == nil {
		return plain(output)
	}
	if len(*r.Open) == 0 {
		return fmt.Sprintf("No task is open; %s done.", count(r.Done, "task"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s still open, %d done:\n", count(len(*r.Open), "task"), r.Done)
	for _, t := range *r.Open {
		fmt.Fprintf(&b, "- %s (%s, line %d)\n", t.Text, t.File, t.Line)
	}
	return strings.TrimSpace(b.String())
}

func plain(output string) string { return "The capability returned:\n" + output }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
