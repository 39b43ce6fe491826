package model

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/tendril-agent/tendril/internal/agent"
)

// AnthropicURL is the address of the provider's own service.
const AnthropicURL = "https://api.anthropic.com"

// anthropicMaxTokens is the longest reply to ask for; the API wants a number,
// and every current model can write this much.
const anthropicMaxTokens = 32000

// AnthropicOptions configures [NewAnthropic].
type AnthropicOptions struct {
	ModelID string
	APIKey  string
	// BaseURL is the address without "/v1"; "" is Anthropic's own.
	BaseURL string
	// MaxTokens bounds one reply; 0 is 32000.
	MaxTokens int64
	// StallTimeout bounds silence in the middle of a reply; 0 is two minutes.
	StallTimeout time.Duration
	// HTTPClient replaces the client that this package makes. Redirects are
	// refused with either.
	HTTPClient *http.Client
}

// Anthropic is a model behind Anthropic's Messages API. It is safe for
// concurrent use.
type Anthropic struct {
	endpoint
	maxTokens int64
	messages  anthropic.MessageService
}

// NewAnthropic returns a model of Anthropic or of a compatible server. Only
// options count: ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL, profiles and the
// other sources of the SDK are not read.
func NewAnthropic(o AnthropicOptions) *Anthropic {
	if o.BaseURL == "" {
		o.BaseURL = AnthropicURL
	}
	if o.MaxTokens <= 0 {
		o.MaxTokens = anthropicMaxTokens
	}
	m := &Anthropic{maxTokens: o.MaxTokens, endpoint: endpoint{
		provider:    "anthropic",
		streamType:  sseStream,
		stall:       o.StallTimeout,
		model:       o.ModelID,
		baseURL:     o.BaseURL,
		credentials: "check ANTHROPIC_API_KEY",
		notFound:    "check the model's name and the base URL",
		unreachable: "check the network and the base URL",
		redactor:    newRedactor(o.APIKey, urlPassword(o.BaseURL)),
	}}
	options := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithHTTPClient(withoutRedirects(o.HTTPClient)),
		option.WithMaxRetries(0),
		option.WithMiddleware(m.intercept),
	}
	if o.APIKey != "" {
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	m.messages = anthropic.NewMessageService(options...)
	return m
}

// Name is "anthropic/…".
func (m *Anthropic) Name() string { return m.provider + "/" + m.model }

// Stream implements [agent.Model].
func (m *Anthropic) Stream(ctx context.Context, req agent.Request) iter.Seq2[agent.Part, error] {
	send := func(ctx context.Context) (*http.Response, error) {
		var resp *http.Response
		stream := m.messages.NewStreaming(ctx, m.params(req), option.WithResponseBodyInto(&resp))
		return resp, stream.Err()
	}
	return func(yield func(agent.Part, error) bool) {
		m.stream(ctx, send, newAnthropicReply(&m.endpoint))(yield)
	}
}
