package acp

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
)

// askTimeout is how long a question waits for a person; silence is a no.
const askTimeout = 5 * time.Minute

// asker is who can be asked in a turn. It is in the turn's context.
type asker struct {
	server *server
	turn   *turn
}

type askerKey struct{}

// Approver asks the client of the session whose turn ctx belongs to. Without
// one the answer is no.
type Approver struct{}

// Approve implements [capability.Approver].
func (Approver) Approve(ctx context.Context, q capability.Question) (capability.Answer, error) {
	a, ok := ctx.Value(askerKey{}).(*asker)
	if !ok {
		return capability.Deny, nil
	}
	defer agent.HoldClock(ctx)()
	return a.ask(ctx, q)
}

// The options of a question.
const (
	optionOnce   = "once"
	optionAlways = "always"
	optionDeny   = "deny"
)

func (a *asker) ask(ctx context.Context, q capability.Question) (capability.Answer, error) {
	waiting, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var answer struct { // the library takes an unknown outcome for a cancellation
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	err := a.server.conn.Call(waiting, sdk.ClientMethodSessionRequestPermission, a.request(q), &answer)
	switch {
	case ctx.Err() != nil:
		return capability.Deny, ctx.Err() // whatever the answer was
	case errors.Is(err, context.DeadlineExceeded):
		a.server.Log(fmt.Sprintf("nobody answered within %s whether %s may have %s: denied", askTimeout, q.Name, q.New))
		return capability.Deny, nil
	case err != nil:
		a.server.Log(fmt.Sprintf("the client cannot ask whether %s may have %s, so it is denied: %v", q.Name, q.New, err))
		return capability.Deny, nil
	case answer.Outcome.Outcome == "cancelled": // so the client cancels the turn
		a.turn.session.interrupt()
		return capability.Deny, context.Canceled
	case answer.Outcome.Outcome != "selected":
		return capability.Deny, nil
	}
	switch answer.Outcome.OptionID {
	case optionOnce:
		return capability.AllowOnce, nil
	case optionAlways:
		return capability.AllowAlways, nil
	}
	return capability.Deny, nil
}

func (a *asker) request(q capability.Question) sdk.RequestPermissionRequest {
	title := line(q.Ask())
	text := title
	if q.Capability != "" {
		text += "\n\nThe model says that it does this: “" + line(q.Capability) + "”"
	}
	text += "\n\nAll that it may do then: " + line(q.Grants.String())
	return sdk.RequestPermissionRequest{
		SessionId: sdk.SessionId(a.turn.session.conversation.ID()),
		ToolCall: sdk.ToolCallUpdate{
			ToolCallId: sdk.ToolCallId(a.turn.callID), Title: &title, Content: []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))},
			Meta: meta(map[string]any{"capability": q.Name, "hosts": orEmpty(q.New.Hosts), "secrets": orEmpty(q.New.Secrets), "grants": q.Grants, "sha256": q.Hash}),
		},
		Options: []sdk.PermissionOption{
			{OptionId: optionOnce, Name: "Allow until Tendril is restarted", Kind: sdk.PermissionOptionKindAllowOnce},
			{OptionId: optionAlways, Name: "Always allow", Kind: sdk.PermissionOptionKindAllowAlways},
			{OptionId: optionDeny, Name: "Do not allow", Kind: sdk.PermissionOptionKindRejectOnce},
		},
	}
}

// orEmpty keeps a list from being null.
func orEmpty(list []string) []string { return append([]string{}, list...) }
