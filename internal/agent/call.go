package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/schema"
)

// The names of the three tools.
const (
	ListTool     = "listCapabilities"
	RegisterTool = "registerCapability"
	ExecuteTool  = "execute"
)

// CheckedTool is a [Tool] whose input may come from anywhere: Call checks it
// against the schema, field names spelled exactly, before anything happens. What
// is wrong with it is a failed result that says how to mend it, and so is a panic
// of the tool.
type CheckedTool struct {
	tool    Tool
	spec    ToolSpec
	schema  *schema.Schema
	fields  []string
	objects map[string]bool // those of fields whose type is object
}

// Check makes the checked form of a tool. It fails when the tool's schema does
// not compile.
func Check(tool Tool) (*CheckedTool, error) {
	spec := tool.Spec()
	compiled, err := schema.Compile(spec.Schema)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	var object struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(spec.Schema, &object); err != nil {
		return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	checked := &CheckedTool{tool: tool, spec: spec, schema: compiled, objects: make(map[string]bool)}
	for name, property := range object.Properties {
		checked.fields = append(checked.fields, name)
		checked.objects[name] = property.Type == "object"
	}
	slices.Sort(checked.fields)
	return checked, nil
}

// Spec implements [Tool].
func (c *CheckedTool) Spec() ToolSpec { return c.spec }

// Call implements [Tool]. The result's text is never blank.
func (c *CheckedTool) Call(ctx context.Context, in Invocation, report func(Progress)) Result {
	input, err := c.input(in.Input)
	if err != nil {
		return failed(err.Error())
	}
	in.Input = input
	return safely(ctx, c.tool, in, report)
}

// input returns an input as the tool takes it, or says what is wrong with it.
func (c *CheckedTool) input(raw json.RawMessage) (json.RawMessage, error) {
	if unknown := schema.UnknownKeys(raw, c.fields...); len(unknown) > 0 {
		return nil, fmt.Errorf("%s does not take %s; its fields are spelled exactly: %s", c.spec.Name, quoted(unknown), quoted(c.fields))
	}
	input := c.unwrap(raw)
	if err := c.schema.Validate("input", input); err != nil {
		return nil, fmt.Errorf("%s was not run: %w", c.spec.Name, err)
	}
	return input, nil
}

// unwrap takes an object that came as a JSON string for the object, and leaves
// out one that came as null or as a blank string: models send both.
func (c *CheckedTool) unwrap(input json.RawMessage) json.RawMessage {
	var values map[string]json.RawMessage
	if json.Unmarshal(input, &values) != nil || values == nil {
		return input
	}
	for name, value := range values {
		if !c.objects[name] {
			continue
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			continue
		}
		switch text = strings.TrimSpace(text); {
		case text == "":
			delete(values, name)
		case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
			values[name] = json.RawMessage(text)
		}
	}
	out, err := json.Marshal(values)
	if err != nil {
		return input
	}
	return out
}

// runCall runs one call, shows it, and gives it its one result.
func (t *turn) runCall(ctx context.Context, call *Call) {
	started := time.Now()
	t.emit(Event{Type: ToolCallStarted, Call: call, CallID: call.ID, Tool: call.Name, Note: t.observe(call)})
	result := t.call(ctx, call)
	t.emit(Event{
		Type: ToolCallFinished, CallID: call.ID, Tool: call.Name, Result: &result,
		DurationMS: time.Since(started).Milliseconds(),
	})
}

// observe notes a departure from the order that the system prompt asks for.
func (t *turn) observe(call *Call) string {
	if call.Name == ExecuteTool && !t.listed {
		return "execute before any listing in this session"
	}
	return ""
}

func (t *turn) call(ctx context.Context, call *Call) Result {
	tool, ok := t.agent.tools[call.Name]
	if !ok {
		return failed(fmt.Sprintf("unknown tool %q; the tools are %s; a capability is run with execute, by its name", bounded(call.Name, 100), quoted(t.toolNames())))
	}
	if call.Malformed != "" {
		return failed(fmt.Sprintf("the arguments of %s were not a valid JSON object, so nothing was run; send the call again with valid JSON. Received: %s", call.Name, call.Malformed))
	}
	return t.supervise(ctx, call, tool)
}

// supervise runs tool in a goroutine of its own and shows its progress from
// ours. It returns when the tool did.
func (t *turn) supervise(ctx context.Context, call *Call, tool *CheckedTool) Result {
	in := Invocation{Input: call.Input, Session: t.session.ID, Model: t.agent.model.Name(), Request: t.request}
	progress := make(chan Progress)
	returned := make(chan struct{})
	report := func(p Progress) {
		select {
		case progress <- p:
		case <-returned:
		}
	}
	var result Result
	go func() {
		defer close(returned)
		result = tool.Call(ctx, in, report)
	}()
	shown := batch{turn: t}
	for {
		select {
		case p := <-progress:
			shown.add(Event{Type: ToolCallProgress, CallID: call.ID, Tool: call.Name, Progress: &p})
		case <-shown.due:
			shown.flush()
		case <-returned:
			shown.flush()
			return result
		}
	}
}

// safely turns a panic of a tool into a failed result. The stack goes to the
// result's detail, for a bug report, and not to the model.
func safely(ctx context.Context, tool Tool, in Invocation, report func(Progress)) (result Result) {
	defer func() {
		if p := recover(); p != nil {
			result = failed(fmt.Sprintf("%s failed inside Tendril; this is a bug of ours, and other calls still work", tool.Spec().Name))
			result.Detail, _ = json.Marshal(map[string]string{"panic": fmt.Sprint(p), "stack": string(debug.Stack())})
		}
	}()
	result = tool.Call(ctx, in, report)
	if strings.TrimSpace(result.Text) == "" {
		result.Text = "(no output)"
	}
	return result
}

func (t *turn) toolNames() []string {
	var names []string
	for _, spec := range t.agent.specs {
		names = append(names, spec.Name)
	}
	return names
}

func failed(text string) Result { return Result{Status: Failed, Text: text} }

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = fmt.Sprintf("%q", bounded(n, 100))
	}
	return strings.Join(list, ", ")
}

// bounded cuts s to about n bytes at a character's border.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
