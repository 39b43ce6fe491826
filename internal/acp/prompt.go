package acp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// prompt begins a turn while its message is handled, so that a cancellation that
// follows finds it, and plays it afterwards.
func (s *server) prompt(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p sdk.PromptRequest
	if err := decode(r.Params, &p); err != nil {
		return nil, err
	}
	ss, err := s.find(string(p.SessionId))
	if err != nil {
		return nil, err
	}
	content, err := contentOf(p.Prompt)
	if err != nil {
		return nil, err
	}
	t, err := ss.begin(ctx)
	if err != nil {
		return nil, err
	}
	return jsonrpc.Later(func() (any, error) {
		defer t.end()
		t.wait()
		result, err := s.play(t, content)
		t.over()
		r.Reply(result, err)
		return nil, nil
	}), nil
}

// play runs a turn and sends its updates, all before it returns.
func (s *server) play(t *turn, content []agent.Block) (any, error) {
	ss := t.session
	a, err := s.agentOf(t.ctx, ss)
	switch {
	case t.ctx.Err() != nil:
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	case err != nil:
		return nil, setupError(err)
	}
	ctx := context.WithValue(t.ctx, askerKey{}, &asker{server: s, turn: t})
	if ss.currentMode() == modeAsk {
		ctx = capability.Asking(ctx)
	}
	tr := s.newTranslator(ss, false)
	var last agent.Event
	for e := range a.Run(ctx, agent.Session{ID: ss.conversation.ID(), Log: ss.conversation}, content) {
		if e.Type == agent.ToolCallStarted {
			t.callID = e.CallID
		}
		tr.event(ctx, e)
		last = e
	}
	return outcome(last, t.ctx.Err() != nil)
}

// stopReasons are the protocol's words for ours. Those that it lacks are told in
// _meta.
var stopReasons = map[agent.StopReason]sdk.StopReason{
	agent.StopEndTurn:   sdk.StopReasonEndTurn,
	agent.StopCancelled: sdk.StopReasonCancelled,
	agent.StopMaxTurns:  sdk.StopReasonMaxTurnRequests,
	agent.StopTimeout:   sdk.StopReasonMaxTurnRequests,
	agent.StopBudget:    sdk.StopReasonMaxTurnRequests,
	agent.StopLoop:      sdk.StopReasonMaxTurnRequests,
	agent.StopMaxTokens: sdk.StopReasonMaxTokens,
	agent.StopRefusal:   sdk.StopReasonRefusal,
}

// turnMeta is what a turn's answer says beside the protocol.
type turnMeta struct {
	Reason      agent.StopReason `json:"reason"`
	Budget      string           `json:"budget,omitempty"` // turn, session or day
	ModelCalls  int              `json:"modelCalls"`
	DurationMS  int64            `json:"durationMs"`
	CostUSD     *float64         `json:"costUsd,omitempty"` // left out when unknown
	CostPartial bool             `json:"costPartial,omitempty"`
}

// outcome is the answer to a prompt whose turn ended with e. An error of a turn
// that was cancelled is the cancellation's.
func outcome(e agent.Event, cancelled bool) (any, error) {
	if e.Stop == agent.StopError && e.Error != nil && (!cancelled || e.Error.Kind == "store") {
		return nil, turnError(e.Error.Kind, e.Error.Message, e.Error.Hint)
	}
	reason, ok := stopReasons[e.Stop]
	if !ok {
		reason = sdk.StopReasonCancelled
	}
	r := sdk.PromptResponse{
		StopReason: reason,
		Meta:       meta(turnMeta{e.Stop, e.Budget, e.ModelCalls, e.DurationMS, e.CostUSD, e.CostPartial}),
	}
	if u := e.Usage; u != nil && *u != (agent.Usage{}) {
		r.Usage = &sdk.Usage{
			InputTokens: int(u.Input), OutputTokens: int(u.Output), CachedReadTokens: sdk.Ptr(int(u.CacheRead)), CachedWriteTokens: sdk.Ptr(int(u.CacheWrite)),
			TotalTokens: int(u.Input + u.Output + u.CacheRead + u.CacheWrite),
		}
	}
	return r, nil
}

// errorData is the data of an error. Kind is an [agent.ErrorKind], "store",
// "internal", or "setup" when no agent can be made.
type errorData struct {
	Kind string `json:"kind"`
	Hint string `json:"hint,omitempty"`
}

func turnError(kind, message, hint string) error {
	if hint != "" {
		message += "; " + hint // editors show the message alone
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: message, Data: errorData{kind, hint}}
}

func setupError(err error) error {
	var m *agent.ModelError
	if errors.As(err, &m) {
		return turnError(string(m.Kind), m.Message, m.Hint)
	}
	return turnError("setup", err.Error(), "")
}

// contentOf is what the model gets of a prompt: all texts, and what else can be
// put into words. A prompt of which nothing can be used is refused.
func contentOf(blocks []sdk.ContentBlock) ([]agent.Block, error) {
	var content []agent.Block
	usable, unusable := false, ""
	for _, b := range blocks {
		text, what := textOf(b)
		if what != "" {
			unusable = what
			text = "(The user attached " + what + ", which this model is not shown.)"
		} else if strings.TrimSpace(text) == "" {
			continue
		} else {
			usable = true
		}
		if strings.ContainsRune(text, 0) {
			return nil, promptError("the prompt is not text (it holds a NUL); put it into a file of the session's folder and name the file")
		}
		content = append(content, agent.Text(text))
	}
	switch {
	case usable:
		return content, nil
	case unusable != "":
		return nil, promptError("the prompt holds only " + unusable + ", which cannot be used here; say in words what you want to be done")
	}
	return nil, promptError("the prompt is empty; write what you want to be done")
}

func promptError(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message, Data: errorData{Kind: "prompt"}}
}

// textOf is a block in words, or what it is instead when it has none.
func textOf(b sdk.ContentBlock) (text, unusable string) {
	switch {
	case b.Text != nil:
		return b.Text.Text, ""
	case b.ResourceLink != nil:
		return fmt.Sprintf("[%s](%s)", b.ResourceLink.Name, b.ResourceLink.Uri), ""
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		r := b.Resource.Resource.TextResourceContents
		return resource(r.Uri, r.Text), ""
	case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
		r := b.Resource.Resource.BlobResourceContents
		if data, err := base64.StdEncoding.DecodeString(r.Blob); err == nil && utf8.Valid(data) {
			return resource(r.Uri, string(data)), ""
		}
		return "", "a file that is not text"
	case b.Image != nil:
		return "", "an image"
	case b.Audio != nil:
		return "", "a recording"
	}
	return "", ""
}

// resource is an attached file. Its text is the user's, as much as the rest of
// the prompt is.
func resource(uri, text string) string {
	return fmt.Sprintf("Attached: %s\n%s", uri, text)
}
