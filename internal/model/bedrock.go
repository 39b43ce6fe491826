package model

import (
	"context"
	"iter"

	"github.com/tendril-agent/tendril/internal/agent"
)

// BedrockOptions configures [NewBedrock].
type BedrockOptions struct {
	ModelID, Region, Profile, BaseURL string
}

// Bedrock is a model behind Bedrock's Converse API.
type Bedrock struct{ o BedrockOptions }

// NewBedrock returns a model of Bedrock.
func NewBedrock(o BedrockOptions) *Bedrock { return &Bedrock{o} }

// Name is "bedrock/…".
func (m *Bedrock) Name() string { return "bedrock/" + m.o.ModelID }

// Stream implements [agent.Model].
func (m *Bedrock) Stream(context.Context, agent.Request) iter.Seq2[agent.Part, error] {
	return func(yield func(agent.Part, error) bool) {
		yield(agent.Part{}, &agent.ModelError{Kind: agent.ErrRequest, Message: "bedrock: not built yet"})
	}
}
