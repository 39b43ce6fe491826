package model

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/tendril-agent/tendril/internal/agent"
)

// OpenAIURL is the address of the provider's own service.
const OpenAIURL = "https://api.openai.com/v1"

// OpenAIOptions configures [NewOpenAI].
type OpenAIOptions struct {
	// Provider stands in the model's name and in errors; "" is "openai".
	// "gemini" and "openrouter" are treated as these servers want it.
	Provider string
	ModelID  string
	// APIKey is sent as a bearer token; compatible servers may need none.
	APIKey string
	// KeyEnv names the variable of the key in hints; "" is OPENAI_API_KEY.
	KeyEnv string
	// KeyHeader is the header that carries the key alone, such as Azure's
	// "api-key"; "" sends a bearer token.
	KeyHeader string
	// BaseURL is the address up to "/v1"; "" is OpenAI's own.
	BaseURL string
	// MaxTokens bounds one reply; 0 leaves it to the server.
	MaxTokens int64
	// StallTimeout bounds silence in the middle of a reply; 0 is two minutes.
	StallTimeout time.Duration
	// HTTPClient replaces the client that this package makes. Redirects are
	// refused with either.
	HTTPClient *http.Client
}

// OllamaOptions configures [NewOllama].
type OllamaOptions struct {
	ModelID string
	// Host is "http://localhost:11434" or the like.
	Host string
	// MaxTokens bounds one reply; 0 leaves it to the server.
	MaxTokens int64
	// StallTimeout bounds silence in the middle of a reply; 0 is two minutes.
	StallTimeout time.Duration
	HTTPClient   *http.Client
}

// OpenAI is a model behind the Chat Completions API: OpenAI's own, Ollama's or
// that of any compatible server. It is safe for concurrent use.
type OpenAI struct {
	endpoint
	maxTokens int64
	chat      openai.ChatCompletionService
}

// NewOpenAI returns a model of OpenAI or of a compatible server, such as those
// of OpenRouter, Azure and Gemini. Only options count: OPENAI_BASE_URL,
// OPENAI_ORG_ID and the other variables of the SDK are not read.
func NewOpenAI(o OpenAIOptions) *OpenAI {
	if o.BaseURL == "" {
		o.BaseURL = OpenAIURL
	}
	return newOpenAI(o, endpoint{
		provider:    cmp.Or(o.Provider, "openai"),
		credentials: "check " + cmp.Or(o.KeyEnv, "OPENAI_API_KEY"),
		notFound:    "check the model's name and the base URL",
		unreachable: "check the network and the base URL",
	})
}

// NewOllama returns a model of an Ollama server.
func NewOllama(o OllamaOptions) *OpenAI {
	host := strings.TrimSuffix(strings.TrimRight(o.Host, "/"), "/v1")
	return newOpenAI(OpenAIOptions{ModelID: o.ModelID, BaseURL: host + "/v1", MaxTokens: o.MaxTokens, StallTimeout: o.StallTimeout, HTTPClient: o.HTTPClient}, endpoint{
		provider:    "ollama",
		credentials: "check what the server in front of Ollama wants",
		notFound:    "run `ollama pull " + o.ModelID + "`",
		unreachable: "start it with `ollama serve` or check its host",
	})
}

func newOpenAI(o OpenAIOptions, e endpoint) *OpenAI {
	e.model, e.baseURL = o.ModelID, o.BaseURL
	e.streamType, e.stall = sseStream, o.StallTimeout
	e.redactor = newRedactor(o.APIKey, urlPassword(o.BaseURL))
	m := &OpenAI{endpoint: e, maxTokens: o.MaxTokens}
	options := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithHTTPClient(withoutRedirects(o.HTTPClient)),
		option.WithMaxRetries(0),
		option.WithMiddleware(m.intercept),
	}
	switch {
	case o.APIKey == "":
	case o.KeyHeader != "":
		options = append(options, option.WithHeader(o.KeyHeader, o.APIKey))
	default:
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	m.chat = openai.NewChatCompletionService(options...)
	return m
}

// Name is "openai/…", "ollama/…" or that of the given provider.
func (m *OpenAI) Name() string { return m.provider + "/" + m.model }

// Stream implements [agent.Model].
func (m *OpenAI) Stream(ctx context.Context, req agent.Request) iter.Seq2[agent.Part, error] {
	send := func(ctx context.Context) (*http.Response, error) {
		var resp *http.Response
		stream := m.chat.NewStreaming(ctx, m.params(req), option.WithResponseBodyInto(&resp))
		return resp, stream.Err()
	}
	return func(yield func(agent.Part, error) bool) {
		m.stream(ctx, send, &openAIReply{endpoint: &m.endpoint})(yield)
	}
}

// urlPassword is the password in an address, or "".
func urlPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}
