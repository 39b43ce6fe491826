package model

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/tendril-agent/tendril/internal/agent"
)

// Servers of the DeepSeek kind want the reasoning of an assistant's message
// back, in the field that they sent it in. The signature of a reasoning block
// of this adapter is the name of that field; without one it is not sent.
const (
	reasoningContent = "reasoning_content"
	reasoningPlain   = "reasoning"
	reasoningParts   = "thinking" // parts of the content: never sent back
)

func (m *OpenAI) params(req agent.Request) openai.ChatCompletionNewParams {
	params := openai.ChatCompletionNewParams{
		Model:         m.model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	m.limitReply(&params)
	if !isBlank(req.System) {
		params.Messages = append(params.Messages, openai.SystemMessage(wireText(req.System)))
	}
	for _, e := range conversation(req.Messages, m.Name(), true) {
		if m.provider == gemini && e.foreign {
			skipSignature(e.blocks)
		}
		params.Messages = append(params.Messages, openAIMessages(e)...)
	}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, openAITool(t))
	}
	if m.provider == openRouter && strings.HasPrefix(m.model, "anthropic/") {
		// The one model family there that caches only when asked to. At the top
		// level this marks the end of the request.
		params.SetExtraFields(map[string]any{"cache_control": map[string]string{"type": "ephemeral"}})
	}
	return params
}

// Providers whose servers want something special.
const (
	gemini     = "gemini"
	openRouter = "openrouter"
)

// skipSignature signs the first call of a step that another model took: Gemini
// refuses an unsigned one, and documents these words for a call that is not its
// own.
func skipSignature(blocks []agent.Block) {
	for _, b := range blocks {
		if b.Type == agent.BlockCall {
			if b.Call.Signature == "" {
				b.Call.Signature = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`
			}
			return
		}
	}
}

// limitReply bounds the reply. OpenAI's newer models refuse the old name of that
// parameter, and many compatible servers know no other.
func (m *OpenAI) limitReply(params *openai.ChatCompletionNewParams) {
	switch {
	case m.maxTokens <= 0:
	case m.baseURL == OpenAIURL || m.provider == "azure":
		params.MaxCompletionTokens = openai.Int(m.maxTokens)
	default:
		params.MaxTokens = openai.Int(m.maxTokens)
	}
}

func openAIMessages(e entry) []openai.ChatCompletionMessageParamUnion {
	if e.user != nil {
		return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(strings.Join(e.user, "\n\n"))}
	}
	messages := []openai.ChatCompletionMessageParamUnion{openAIAssistant(e.blocks)}
	for _, r := range e.results {
		messages = append(messages, openai.ToolMessage(r.Text, r.CallID))
	}
	return messages
}

func openAIAssistant(blocks []agent.Block) openai.ChatCompletionMessageParamUnion {
	var message openai.ChatCompletionAssistantMessageParam
	var text strings.Builder
	reasoning := map[string]string{}
	for _, b := range blocks {
		switch b.Type {
		case agent.BlockText:
			text.WriteString(b.Text)
		case agent.BlockReasoning:
			if b.Signature == reasoningContent || b.Signature == reasoningPlain {
				reasoning[b.Signature] += wireText(b.Text)
			}
		case agent.BlockCall:
			message.ToolCalls = append(message.ToolCalls, openAICall(*b.Call))
		}
	}
	if text.Len() > 0 {
		message.Content.OfString = openai.String(text.String())
	}
	extra := map[string]any{}
	for field, value := range reasoning {
		extra[field] = value
	}
	if len(extra) > 0 {
		message.SetExtraFields(extra)
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &message}
}

// openAICall sends a call back with the extra content that it came with, which
// is its signature.
func openAICall(call agent.Call) openai.ChatCompletionMessageToolCallUnionParam {
	param := &openai.ChatCompletionMessageFunctionToolCallParam{
		ID: call.ID,
		Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
			Name:      call.Name,
			Arguments: string(call.Input),
		},
	}
	if isObject(call.Signature) {
		param.SetExtraFields(map[string]any{"extra_content": wireInput(json.RawMessage(call.Signature))})
	}
	return openai.ChatCompletionMessageToolCallUnionParam{OfFunction: param}
}

func openAITool(t agent.ToolSpec) openai.ChatCompletionToolUnionParam {
	parameters := shared.FunctionParameters{}
	for keyword, value := range toolSchema(t.Schema) {
		parameters[keyword] = value
	}
	function := shared.FunctionDefinitionParam{Name: legalName(t.Name), Parameters: parameters}
	if !isBlank(t.Description) {
		function.Description = openai.String(wireText(t.Description))
	}
	return openai.ChatCompletionFunctionTool(function)
}
