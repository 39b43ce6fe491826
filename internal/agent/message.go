package agent

import "encoding/json"

// Role says who speaks in a [Message].
type Role string

// The three roles. Results of tool calls are a message of their own, with
// [RoleTool], directly after the assistant message that holds the calls.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation, independent of any provider. It is
// stored as JSON, so its shape only grows.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
	// Model is "provider/model" of an assistant message. Reasoning is replayed
	// only to the model that wrote it.
	Model string `json:"model,omitempty"`
}

// BlockType names the one group of fields that a [Block] uses.
type BlockType string

// The kinds of block.
const (
	BlockText      BlockType = "text"
	BlockReasoning BlockType = "reasoning"
	BlockCall      BlockType = "call"
	BlockResult    BlockType = "result"
)

// Block is a part of a message: text, reasoning, a tool call, or the result of
// one.
type Block struct {
	Type BlockType `json:"type"`
	// Text is the text of a text, reasoning or result block.
	Text string `json:"text,omitempty"`
	// Signature authenticates reasoning to the provider that wrote it; Redacted
	// marks reasoning whose Text is the provider's opaque data.
	Signature string `json:"signature,omitempty"`
	Redacted  bool   `json:"redacted,omitempty"`
	// Call is set for BlockCall.
	Call *Call `json:"call,omitempty"`
	// CallID and IsError belong to BlockResult.
	CallID  string `json:"call_id,omitempty"`
	IsError bool   `json:"is_error,omitempty"`
}

// Call is a model's wish to use a tool.
type Call struct {
	// ID is unique in the whole history of a session; the loop replaces an ID
	// that is empty or that was used before.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Input is a JSON object with the digits of its numbers untouched. When the
	// model sent something else, Input is {} and Malformed says what it sent:
	// the tool is then not run.
	Input     json.RawMessage `json:"input"`
	Malformed string          `json:"malformed,omitempty"`
	// Signature is opaque data of the provider that goes back with the call, to
	// the model that wrote it and to no other.
	Signature string `json:"signature,omitempty"`
}

// Text makes a text block.
func Text(s string) Block { return Block{Type: BlockText, Text: s} }
