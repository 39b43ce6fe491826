package model

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
)

// resultsSeen is what an assistant says where a person went on after the results
// of calls: Converse wants results to be alone in their message, and the roles
// to take turns.
const resultsSeen = "(results received)"

// bedrockFamily is what Bedrock takes from one kind of model and refuses from
// the others.
type bedrockFamily struct {
	status    bool // the status of a result
	cache     bool // cache points in the system prompt and in user messages
	cacheMore bool // and in tools and assistant messages
}

// familyOf goes by the vendor's own name of the model, which stands in the ids
// and ARNs of models and of inference profiles ("us.anthropic.claude-…"). What
// has no such name, as an application's profile, gets what every model takes.
func familyOf(id string) bedrockFamily {
	switch {
	case strings.Contains(id, "amazon.nova-"):
		return bedrockFamily{status: true, cache: true}
	case strings.Contains(id, "anthropic.claude-"):
		cache := !slices.ContainsFunc(uncached, func(old string) bool { return strings.Contains(id, old) })
		return bedrockFamily{status: !strings.Contains(id, "claude-v2") && !strings.Contains(id, "claude-instant"), cache: cache, cacheMore: cache}
	}
	return bedrockFamily{}
}

// uncached are the models of Anthropic that Bedrock refuses cache points of.
var uncached = []string{"claude-v2", "claude-instant", "claude-3-haiku", "claude-3-sonnet", "claude-3-opus", "claude-3-5-sonnet"}

// The request of ConverseStream, as far as it is used.
type (
	bedrockRequest struct {
		Messages  []bedrockMessage  `json:"messages"`
		System    []bedrockBlock    `json:"system,omitempty"`
		Inference *bedrockInference `json:"inferenceConfig,omitempty"`
		Tools     *bedrockTools     `json:"toolConfig,omitempty"`
	}
	bedrockInference struct {
		MaxTokens int64 `json:"maxTokens"`
	}
	bedrockMessage struct {
		Role    string         `json:"role"`
		Content []bedrockBlock `json:"content"`
	}
	// bedrockBlock is a block of any kind: one field is set.
	bedrockBlock struct {
		Text      string            `json:"text,omitempty"`
		Reasoning *bedrockReasoning `json:"reasoningContent,omitempty"`
		Use       *bedrockUse       `json:"toolUse,omitempty"`
		Result    *bedrockResult    `json:"toolResult,omitempty"`
		Cache     *bedrockCache     `json:"cachePoint,omitempty"`
	}
	bedrockReasoning struct {
		Text     *bedrockThought `json:"reasoningText,omitempty"`
		Redacted string          `json:"redactedContent,omitempty"`
	}
	bedrockThought struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
	}
	bedrockUse struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	bedrockResult struct {
		ID      string         `json:"toolUseId"`
		Content []bedrockBlock `json:"content"`
		Status  string         `json:"status,omitempty"`
	}
	bedrockCache struct {
		Type string `json:"type"`
	}
	bedrockTools struct {
		Tools []bedrockTool `json:"tools"`
	}
	// bedrockTool is a tool, or the end of those that may be cached.
	bedrockTool struct {
		Spec  *bedrockSpec  `json:"toolSpec,omitempty"`
		Cache *bedrockCache `json:"cachePoint,omitempty"`
	}
	bedrockSpec struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Schema      struct {
			JSON map[string]json.RawMessage `json:"json"`
		} `json:"inputSchema"`
	}
)

// cacheHere ends a part of the request that the provider may cache.
func cacheHere() *bedrockCache { return &bedrockCache{"default"} }

// params marks what may be cached, where the model's family allows it: the
// tools, the instructions, and the conversation up to the last text of a person
// and up to the last calls. Their results are not marked, for they must be alone
// in their message; the calls of the next step include them.
func (m *Bedrock) params(req agent.Request) bedrockRequest {
	entries := conversation(req.Messages, m.Name(), false)
	params := bedrockRequest{Messages: []bedrockMessage{}}
	if m.options.MaxTokens > 0 {
		params.Inference = &bedrockInference{m.options.MaxTokens}
	}
	if !isBlank(req.System) {
		params.System = []bedrockBlock{{Text: wireText(req.System)}}
		if m.family.cache {
			params.System = append(params.System, bedrockBlock{Cache: cacheHere()})
		}
	}
	for i, e := range entries {
		if e.user != nil && i > 0 && len(entries[i-1].results) > 0 {
			params.Messages = append(params.Messages, bedrockMessage{"assistant", []bedrockBlock{{Text: resultsSeen}}})
		}
		params.Messages = append(params.Messages, m.messages(e)...)
	}
	m.markCache(params.Messages)
	params.Tools = m.tools(req.Tools, entries)
	return params
}

func (m *Bedrock) messages(e entry) []bedrockMessage {
	if e.user != nil {
		message := bedrockMessage{Role: "user"}
		for _, text := range e.user {
			message.Content = append(message.Content, bedrockBlock{Text: text})
		}
		return []bedrockMessage{message}
	}
	messages := []bedrockMessage{{"assistant", bedrockBlocks(e.blocks)}}
	if len(e.results) > 0 {
		messages = append(messages, bedrockMessage{"user", m.results(e.results)})
	}
	return messages
}

func bedrockBlocks(blocks []agent.Block) []bedrockBlock {
	var content []bedrockBlock
	for _, b := range blocks {
		switch {
		case b.Type == agent.BlockText:
			content = append(content, bedrockBlock{Text: b.Text})
		case b.Type == agent.BlockCall:
			content = append(content, bedrockBlock{Use: &bedrockUse{b.Call.ID, b.Call.Name, b.Call.Input}})
		case b.Redacted && b.Text != "":
			content = append(content, bedrockBlock{Reasoning: &bedrockReasoning{Redacted: wireText(b.Text)}})
		case b.Signature != "": // unsigned reasoning would be refused
			content = append(content, bedrockBlock{Reasoning: &bedrockReasoning{Text: &bedrockThought{wireText(b.Text), wireText(b.Signature)}}})
		}
	}
	return content
}

func (m *Bedrock) results(results []agent.Block) []bedrockBlock {
	var content []bedrockBlock
	for _, r := range results {
		result := &bedrockResult{ID: r.CallID, Content: []bedrockBlock{{Text: r.Text}}}
		switch {
		case !m.family.status:
		case r.IsError:
			result.Status = "error"
		default:
			result.Status = "success"
		}
		content = append(content, bedrockBlock{Result: result})
	}
	return content
}

// markCache ends the last message that is text of a user, and the last one with
// calls, with a cache point.
func (m *Bedrock) markCache(messages []bedrockMessage) {
	mark := func(has func(bedrockMessage) bool) {
		for i := len(messages) - 1; i >= 0; i-- {
			if has(messages[i]) {
				messages[i].Content = append(messages[i].Content, bedrockBlock{Cache: cacheHere()})
				return
			}
		}
	}
	if m.family.cache {
		mark(func(m bedrockMessage) bool { return m.Role == "user" && m.Content[0].Text != "" })
	}
	if m.family.cacheMore {
		mark(func(m bedrockMessage) bool { return m.Content[len(m.Content)-1].Use != nil })
	}
}

// tools describes the tools. Converse refuses a conversation with calls but
// without tools, so those that were called stand in for none.
func (m *Bedrock) tools(specs []agent.ToolSpec, entries []entry) *bedrockTools {
	if len(specs) == 0 {
		specs = calledTools(entries)
	}
	if len(specs) == 0 {
		return nil
	}
	var config bedrockTools
	for _, t := range specs {
		spec := &bedrockSpec{Name: legalName(t.Name)}
		if !isBlank(t.Description) {
			spec.Description = wireText(t.Description)
		}
		spec.Schema.JSON = toolSchema(t.Schema)
		config.Tools = append(config.Tools, bedrockTool{Spec: spec})
	}
	if m.family.cacheMore {
		config.Tools = append(config.Tools, bedrockTool{Cache: cacheHere()})
	}
	return &config
}

func calledTools(entries []entry) []agent.ToolSpec {
	var specs []agent.ToolSpec
	for _, e := range entries {
		for _, b := range e.blocks {
			named := func(t agent.ToolSpec) bool { return t.Name == b.Call.Name }
			if b.Type == agent.BlockCall && !slices.ContainsFunc(specs, named) {
				specs = append(specs, agent.ToolSpec{Name: b.Call.Name, Description: "Not available any more."})
			}
		}
	}
	return specs
}
