package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// Permission is a question that only a person answers.
type Permission struct {
	ID         string   `json:"id"`
	CallID     string   `json:"callId,omitempty" doc:"The tool call that waits for it"`
	Title      string   `json:"title"`
	Text       string   `json:"text"`
	Capability string   `json:"capability,omitempty"`
	Hosts      []string `json:"hosts" doc:"That are asked about"`
	NewSecrets []string `json:"newSecrets" doc:"Secrets that are asked about: it could send them to any host of net"`
	Net        []string `json:"net" doc:"All hosts that it may reach if this is allowed"`
	Read       []string `json:"read" doc:"What it may read, relative to the workspace"`
	Write      []string `json:"write" doc:"What it may write"`
	Secrets    []string `json:"secrets" doc:"That it is given"`
	Hash       string   `json:"sha256,omitempty" doc:"Of the version that asks, as the capability has it; its source is there, or in the tool call that registers it"`
	Options    []Option `json:"options"`
}

// Option is an answer that can be chosen.
type Option struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind" enum:"allow_once,allow_always,reject_once,reject_always"`
}

// question is a permission with who waits for it.
type question struct {
	Permission
	answer chan string // the id of an option; closed without one when it is withdrawn
}

// ask puts a question to the person, and answers the agent with what they chose.
func (h *Host) ask(c *child, r *jsonrpc.Request) (any, error) {
	var p struct {
		SessionID string `json:"sessionId"`
		ToolCall  struct {
			ID      string `json:"toolCallId"`
			Title   string `json:"title"`
			Content []struct {
				Content struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"content"`
			Meta struct {
				Tendril struct {
					Capability string            `json:"capability"`
					Hosts      []string          `json:"hosts"`
					Secrets    []string          `json:"secrets"`
					Grants     capability.Grants `json:"grants"`
					Hash       string            `json:"sha256"`
				} `json:"tendril"`
			} `json:"_meta"`
		} `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the question cannot be read: %v", err)
	}
	about := p.ToolCall.Meta.Tendril
	list := func(texts []string) []string { return append([]string{}, texts...) } // never null
	q := &question{answer: make(chan string, 1), Permission: Permission{
		ID: strings.ToLower(rand.Text()), CallID: p.ToolCall.ID, Title: p.ToolCall.Title,
		Capability: about.Capability, Hosts: list(about.Hosts), NewSecrets: list(about.Secrets), Hash: about.Hash,
		Net: list(about.Grants.Net), Read: list(about.Grants.Read), Write: list(about.Grants.Write), Secrets: list(about.Grants.Secrets),
	}}
	for _, part := range p.ToolCall.Content {
		q.Text += part.Content.Text
	}
	for _, o := range p.Options {
		q.Options = append(q.Options, Option{o.ID, o.Name, o.Kind})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	conversation := h.conversations[p.SessionID]
	if conversation == nil || !conversation.running || conversation.cancelled {
		return outcome("", false), nil
	}
	conversation.permissions = append(conversation.permissions, q)
	h.tellState(conversation)
	return jsonrpc.Later(func() (any, error) {
		select {
		case option, ok := <-q.answer:
			return outcome(option, ok), nil
		case <-c.done:
			return nil, errNoAgent
		}
	}), nil
}

func outcome(option string, selected bool) any {
	o := map[string]string{"outcome": "cancelled"}
	if selected {
		o = map[string]string{"outcome": "selected", "optionId": option}
	}
	return map[string]any{"outcome": o}
}

// withdraw takes back the questions of a call, or with "" all of a conversation.
// The host is locked.
func (h *Host) withdraw(c *conversation, callID string) {
	before := len(c.permissions)
	c.permissions = slices.DeleteFunc(c.permissions, func(q *question) bool {
		if callID != "" && q.CallID != callID {
			return false
		}
		close(q.answer)
		return true
	})
	if len(c.permissions) != before {
		h.tellState(c)
	}
}

var errGone = errors.New("the question was answered already, or is not asked any more")

// decide answers a question, once.
func (h *Host) decide(id, permission, option string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.conversations[id]
	if c == nil {
		return errGone
	}
	at := slices.IndexFunc(c.permissions, func(q *question) bool { return q.ID == permission })
	if at < 0 {
		return errGone
	}
	q := c.permissions[at]
	if !slices.ContainsFunc(q.Options, func(o Option) bool { return o.ID == option }) {
		return fmt.Errorf("%.40q is not among the answers", option)
	}
	q.answer <- option // it has room for one
	c.permissions = slices.Delete(c.permissions, at, at+1)
	h.tellState(c)
	return nil
}

// handle is what an agent asks us and tells us.
func (h *Host) handle(_ context.Context, c *child, r *jsonrpc.Request) (any, error) {
	switch r.Method {
	case sdk.ClientMethodSessionRequestPermission:
		return h.ask(c, r)
	case "_tendril/event":
		return nil, h.took(r.Params)
	}
	return nil, jsonrpc.MethodNotFound(r.Method)
}
