package model

import (
	"fmt"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
)

// Texts for what a history lacks and providers insist on.
const (
	noOutput      = "(no output)"
	failedSilent  = "(failed without output)"
	noResult      = "(no result: the call was interrupted)"
	startOfSpeech = "(continue)"
)

// entry is one step of a conversation as every provider takes it: either a
// user's texts, or an assistant's blocks with the results of its calls. User
// and assistant take turns, and the first is a user.
type entry struct {
	user    []string      // texts; nil in an assistant's entry
	blocks  []agent.Block // text, reasoning and call, at least one text or call
	results []agent.Block // one for each call, in call order
	foreign bool          // another model wrote the blocks, or some of them
}

// conversation makes any history fit for the wire. Blank texts and stray
// results go, each call gets exactly one result, names, ids and inputs become
// legal, reasoning and signatures of models other than model go. With keepIDs the ids of
// model's own calls are not changed beyond what uniqueness needs.
func conversation(messages []agent.Message, model string, keepIDs bool) []entry {
	c := converter{model: model, keepIDs: keepIDs, ids: map[string]bool{}}
	for i, m := range messages {
		switch m.Role {
		case agent.RoleUser:
			c.user(m)
		case agent.RoleAssistant:
			c.assistant(m, resultsAfter(messages[i+1:]))
		}
	}
	return c.entries
}

type converter struct {
	model   string
	keepIDs bool
	ids     map[string]bool // those that are taken
	entries []entry
}

func (c *converter) user(m agent.Message) {
	var texts []string
	for _, b := range m.Blocks {
		if b.Type == agent.BlockText && !isBlank(b.Text) {
			texts = append(texts, wireText(b.Text))
		}
	}
	if len(texts) > 0 {
		c.addUser(texts)
	}
}

func (c *converter) addUser(texts []string) {
	if last := c.last(); last != nil && last.user != nil {
		last.user = append(last.user, texts...)
		return
	}
	c.entries = append(c.entries, entry{user: texts})
}

func (c *converter) assistant(m agent.Message, results map[string][]agent.Block) {
	own := m.Model == c.model
	e := entry{foreign: !own}
	speaks := false
	for _, b := range m.Blocks {
		switch {
		case b.Type == agent.BlockText && !isBlank(b.Text):
			e.blocks = append(e.blocks, agent.Text(wireText(b.Text)))
			speaks = true
		case b.Type == agent.BlockReasoning && own:
			e.blocks = append(e.blocks, b)
		case b.Type == agent.BlockCall && b.Call != nil:
			call := c.call(*b.Call, own)
			e.blocks = append(e.blocks, agent.Block{Type: agent.BlockCall, Call: &call})
			e.results = append(e.results, takeResult(results, b.Call.ID, call.ID))
			speaks = true
		}
	}
	if speaks {
		c.addAssistant(e)
	}
}

func (c *converter) addAssistant(e entry) {
	last := c.last()
	switch {
	case last == nil:
		c.addUser([]string{startOfSpeech})
	case last.user == nil && len(last.results) == 0:
		last.blocks = append(last.blocks, e.blocks...)
		last.results = e.results
		last.foreign = last.foreign || e.foreign
		return
	}
	c.entries = append(c.entries, e)
}

func (c *converter) last() *entry {
	if len(c.entries) == 0 {
		return nil
	}
	return &c.entries[len(c.entries)-1]
}

func (c *converter) call(call agent.Call, own bool) agent.Call {
	if !own {
		call.Signature = ""
	}
	return agent.Call{ID: c.id(call.ID, own), Name: legalName(call.Name), Input: wireInput(call.Input), Signature: call.Signature}
}

// id makes an id legal and unique. The same history gives the same ids, so a
// provider's cache of its beginning stays valid.
func (c *converter) id(id string, own bool) string {
	if own && c.keepIDs {
		id = wireText(id)
	} else {
		id = legalChars(id, maxID)
	}
	for n := 1; id == "" || c.ids[id]; n++ {
		id = fmt.Sprintf("call_%d", n)
	}
	c.ids[id] = true
	return id
}

// resultsAfter collects the results that follow an assistant's message, before
// the next one, by call id.
func resultsAfter(messages []agent.Message) map[string][]agent.Block {
	results := map[string][]agent.Block{}
	for _, m := range messages {
		if m.Role == agent.RoleAssistant {
			break
		}
		for _, b := range m.Blocks {
			if b.Type == agent.BlockResult {
				results[b.CallID] = append(results[b.CallID], b)
			}
		}
	}
	return results
}

// takeResult takes the next result for the call with the id from out of
// results, or makes one, and addresses it to the id to.
func takeResult(results map[string][]agent.Block, from, to string) agent.Block {
	result := agent.Block{Type: agent.BlockResult, Text: noResult, IsError: true}
	if list := results[from]; len(list) > 0 {
		result, results[from] = list[0], list[1:]
	}
	result.CallID = to
	result.Text = wireText(result.Text)
	switch {
	case !isBlank(result.Text):
	case result.IsError:
		result.Text = failedSilent
	default:
		result.Text = noOutput
	}
	return result
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
