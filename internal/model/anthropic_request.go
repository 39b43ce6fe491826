package model

import (
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/tendril-agent/tendril/internal/agent"
)

// params marks four ends of what the provider may cache, as many as it takes:
// the tools, the instructions, the conversation so far, and the conversation as
// the request before had it. The last one is for long steps: the provider looks
// for what it cached only a few blocks before a mark.
func (m *Anthropic) params(req agent.Request) anthropic.MessageNewParams {
	params := anthropic.MessageNewParams{Model: m.model, MaxTokens: m.maxTokens}
	if !isBlank(req.System) {
		params.System = []anthropic.TextBlockParam{{
			Text:         wireText(req.System),
			CacheControl: anthropic.NewCacheControlEphemeralParam(),
		}}
	}
	params.Messages = anthropicMessages(conversation(req.Messages, m.Name(), false))
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, anthropicTool(t))
	}
	if last := len(params.Tools) - 1; last >= 0 {
		params.Tools[last].OfTool.CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	return params
}

// anthropicMessages puts the results of calls at the start of the user message
// that follows them, so that the roles take turns.
func anthropicMessages(entries []entry) []anthropic.MessageParam {
	messages := []anthropic.MessageParam{}
	var answer []anthropic.ContentBlockParamUnion // what the next user message starts with
	for _, e := range entries {
		if e.user == nil {
			if len(answer) > 0 {
				messages = append(messages, anthropic.NewUserMessage(answer...))
			}
			messages = append(messages, anthropic.NewAssistantMessage(anthropicBlocks(e.blocks)...))
			answer = anthropicResults(e.results)
			continue
		}
		for _, text := range e.user {
			answer = append(answer, anthropic.NewTextBlock(text))
		}
		messages = append(messages, anthropic.NewUserMessage(answer...))
		answer = nil
	}
	if len(answer) > 0 {
		messages = append(messages, anthropic.NewUserMessage(answer...))
	}
	markCache(messages)
	return messages
}

func anthropicBlocks(blocks []agent.Block) []anthropic.ContentBlockParamUnion {
	var content []anthropic.ContentBlockParamUnion
	for _, b := range blocks {
		switch {
		case b.Type == agent.BlockText:
			content = append(content, anthropic.NewTextBlock(b.Text))
		case b.Type == agent.BlockCall:
			content = append(content, anthropic.NewToolUseBlock(b.Call.ID, b.Call.Input, b.Call.Name))
		case b.Redacted && b.Text != "":
			content = append(content, anthropic.NewRedactedThinkingBlock(wireText(b.Text)))
		case b.Signature != "": // unsigned reasoning would be refused
			content = append(content, anthropic.NewThinkingBlock(wireText(b.Signature), wireText(b.Text)))
		}
	}
	return content
}

func anthropicResults(results []agent.Block) []anthropic.ContentBlockParamUnion {
	var content []anthropic.ContentBlockParamUnion
	for _, r := range results {
		content = append(content, anthropic.NewToolResultBlock(r.CallID, r.Text, r.IsError))
	}
	return content
}

// markCache marks the ends of the last two messages of the user: one of a
// request is the end of its conversation, so the other is what the request
// before ended in.
func markCache(messages []anthropic.MessageParam) {
	marks := 2
	for i := len(messages) - 1; i >= 0 && marks > 0; i-- {
		if messages[i].Role == anthropic.MessageParamRoleUser {
			markEnd(messages[i].Content)
			marks--
		}
	}
}

func markEnd(content []anthropic.ContentBlockParamUnion) {
	switch last := content[len(content)-1]; {
	case last.OfToolResult != nil:
		last.OfToolResult.CacheControl = anthropic.NewCacheControlEphemeralParam()
	case last.OfText != nil:
		last.OfText.CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
}

func anthropicTool(t agent.ToolSpec) anthropic.ToolUnionParam {
	schema := anthropic.ToolInputSchemaParam{Required: []string{}, ExtraFields: map[string]any{}}
	for keyword, value := range toolSchema(t.Schema) {
		switch keyword {
		case "type": // the SDK writes it
		case "properties":
			schema.Properties = value
		case "required":
			_ = json.Unmarshal(value, &schema.Required) // toolSchema made it a list of strings
		default:
			schema.ExtraFields[keyword] = value
		}
	}
	tool := &anthropic.ToolParam{Name: legalName(t.Name), InputSchema: schema}
	if !isBlank(t.Description) {
		tool.Description = anthropic.String(wireText(t.Description))
	}
	return anthropic.ToolUnionParam{OfTool: tool}
}
