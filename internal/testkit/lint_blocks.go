package testkit

import (
	"bytes"
	"slices"
)

// block is a content block of a provider whose messages are lists of blocks.
type block struct {
	text     *string
	use      *toolUse
	result   *toolResult
	unsigned bool // reasoning without a signature
}

type toolUse struct {
	id          string
	name, input any
}

type toolResult struct {
	id      string
	content any
	isError bool
}

func (l *linter) anthropic(raw []byte, body map[string]any) {
	l.blocks(body, anthropicBlock, false)
	var list []tool
	for _, t := range maps(body["tools"]) {
		if schema, ok := t["input_schema"]; ok {
			list = append(list, tool{t["name"], schema})
		}
	}
	l.tools(list)
	if bytes.Count(raw, []byte(`"cache_control"`)) > 4 {
		l.errorf("more-than-4-cache-marks")
	}
}

func anthropicBlock(m map[string]any) block {
	switch m["type"] {
	case "text":
		return block{text: text(m["text"])}
	case "tool_use":
		return block{use: &toolUse{identifier(m["id"]), m["name"], m["input"]}}
	case "tool_result":
		return block{result: &toolResult{identifier(m["tool_use_id"]), m["content"], m["is_error"] == true}}
	case "thinking":
		return block{unsigned: m["signature"] == nil || m["signature"] == ""}
	}
	return block{}
}

func (l *linter) bedrock(body map[string]any) {
	l.blocks(body, bedrockBlock, true)
	for i, m := range maps(body["messages"]) {
		results, all := 0, maps(m["content"])
		for _, b := range all {
			if _, ok := b["toolResult"]; ok {
				results++
			}
		}
		if results > 0 && results < len(all) {
			l.errorf("text-and-toolResult-in-one-turn msg %d", i)
		}
	}
	config, _ := body["toolConfig"].(map[string]any)
	var list []tool
	for _, t := range maps(config["tools"]) {
		if spec, ok := t["toolSpec"].(map[string]any); ok {
			schema, _ := spec["inputSchema"].(map[string]any)
			list = append(list, tool{spec["name"], schema["json"]})
		}
	}
	l.tools(list)
}

func bedrockBlock(m map[string]any) block {
	if use, ok := m["toolUse"].(map[string]any); ok {
		return block{use: &toolUse{identifier(use["toolUseId"]), use["name"], use["input"]}}
	}
	if result, ok := m["toolResult"].(map[string]any); ok {
		return block{result: &toolResult{identifier(result["toolUseId"]), result["content"], result["status"] == "error"}}
	}
	if value, ok := m["text"]; ok {
		return block{text: text(value)}
	}
	return block{}
}

// text makes what is no string a blank.
func text(value any) *string {
	s, _ := value.(string)
	return &s
}

// blocks checks the messages of one body, which read translates. With
// alternate, roles must take turns.
func (l *linter) blocks(body map[string]any, read func(map[string]any) block, alternate bool) {
	seen, pending := map[string]bool{}, []string{}
	var last any
	for i, m := range maps(body["messages"]) {
		role := m["role"]
		content := contentBlocks(m["content"], read)
		if len(content) == 0 {
			l.errorf("empty-content msg %d", i)
		}
		if alternate && role == last {
			l.errorf("roles-not-alternating msg %d", i)
		}
		if i == 0 && role != "user" {
			l.errorf("first-role %v", role)
		}
		last = role
		if role == "user" {
			l.results(i, content, pending)
			pending = nil
		}
		for _, b := range content {
			l.block(i, b)
			if b.use != nil {
				if seen[b.use.id] {
					l.errorf("id-reused-in-history %q", b.use.id)
				}
				seen[b.use.id] = true
				pending = append(pending, b.use.id)
			}
		}
	}
	if len(pending) > 0 {
		l.errorf("use-without-result at end: %v", pending)
	}
}

func contentBlocks(content any, read func(map[string]any) block) []block {
	if s, ok := content.(string); ok {
		return []block{{text: &s}}
	}
	var all []block
	for _, m := range maps(content) {
		all = append(all, read(m))
	}
	return all
}

// results checks a user message against the calls that it must answer.
func (l *linter) results(i int, content []block, pending []string) {
	var ids []string
	other := false
	for _, b := range content {
		switch {
		case b.result == nil:
			other = true
		case other:
			l.errorf("result-not-first msg %d", i)
		}
		if b.result != nil {
			if slices.Contains(ids, b.result.id) {
				l.errorf("two-results-for-one-use msg %d", i)
			}
			ids = append(ids, b.result.id)
			if !slices.Contains(pending, b.result.id) {
				l.errorf("result-without-use msg %d: %q", i, b.result.id)
			}
		}
	}
	for _, id := range pending {
		if !slices.Contains(ids, id) {
			l.errorf("use-without-result msg %d: %q", i, id)
		}
	}
}

// block checks what one block must be by itself.
func (l *linter) block(i int, b block) {
	if b.text != nil && blank(*b.text) {
		l.errorf("blank-text-block msg %d", i)
	}
	if b.use != nil {
		if name, _ := b.use.name.(string); !legalName.MatchString(name) {
			l.errorf("tool-name %q", name)
		}
		if _, ok := b.use.input.(map[string]any); !ok {
			l.errorf("input-not-object msg %d", i)
		}
	}
	if b.result != nil && b.result.isError && isEmpty(b.result.content) {
		l.errorf("error-result-empty msg %d", i)
	}
	if b.unsigned {
		l.errorf("thinking-without-signature msg %d", i)
	}
}
