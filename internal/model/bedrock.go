package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tendril-agent/tendril/internal/agent"
)

// bedrockStall is longer than stallTime: Bedrock sends no pings, and holds the
// arguments of a call back until the model has written a whole string of them.
const bedrockStall = 5 * time.Minute

// BedrockOptions configures [NewBedrock].
type BedrockOptions struct {
	// ModelID is a model's id, or the id or ARN of an inference profile.
	ModelID string
	// Region is "us-east-1" or the like; "" is that of the environment or of
	// the profile.
	Region string
	// Profile is a profile of the AWS configuration files; "" is AWS_PROFILE or
	// the default one.
	Profile string
	// BaseURL replaces the address of the region, for VPC endpoints.
	BaseURL string
	// MaxTokens bounds one reply; 0 leaves it to the model, whose own limit is
	// Bedrock's default.
	MaxTokens int64
	// StallTimeout bounds silence in the middle of a reply; 0 is five minutes.
	StallTimeout time.Duration
	// HTTPClient replaces the client that this package makes. Redirects are
	// refused with either.
	HTTPClient *http.Client
}

// Bedrock is a model behind the ConverseStream API of Amazon Bedrock. It is
// safe for concurrent use.
type Bedrock struct {
	endpoint
	options BedrockOptions
	family  bedrockFamily
	http    *http.Client

	mu  sync.Mutex
	aws *awsAccount // nil until the first request
}

// NewBedrock returns a model of Bedrock. Nothing is read or looked for before
// the first request. Then credentials come from where AWS tools take them:
// AWS_BEARER_TOKEN_BEDROCK, the environment, the profile (SSO, roles and
// processes included), a container, or an EC2 instance.
func NewBedrock(o BedrockOptions) *Bedrock {
	login := "set AWS_PROFILE, AWS_ACCESS_KEY_ID or AWS_BEARER_TOKEN_BEDROCK"
	if o.Profile != "" {
		login = fmt.Sprintf("check the credentials of the profile %q", o.Profile)
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = bedrockStall
	}
	return &Bedrock{
		options: o,
		family:  familyOf(o.ModelID),
		http:    withoutRedirects(o.HTTPClient),
		endpoint: endpoint{
			provider:    "bedrock",
			model:       o.ModelID,
			baseURL:     o.BaseURL,
			streamType:  awsStream,
			stall:       o.StallTimeout,
			credentials: login,
			notFound:    "check the model's id and the region",
			unreachable: "check the network, the region and the base URL",
			redactor:    newRedactor(urlPassword(o.BaseURL)),
		},
	}
}

// Name is "bedrock/…".
func (m *Bedrock) Name() string { return m.provider + "/" + m.model }

// Stream implements [agent.Model]. One exception: AWS's library ends a search
// for credentials by itself, so when ctx ends during one, that search goes on
// in the background, for a minute at most.
func (m *Bedrock) Stream(ctx context.Context, req agent.Request) iter.Seq2[agent.Part, error] {
	return func(yield func(agent.Part, error) bool) {
		e := m.endpoint // a copy, because the secrets are known only now
		send := func(ctx context.Context) (*http.Response, error) { return m.send(ctx, &e, req) }
		e.stream(ctx, send, newBedrockReply(&e))(yield)
	}
}

func (m *Bedrock) send(ctx context.Context, e *endpoint, req agent.Request) (*http.Response, error) {
	account, err := m.account(ctx)
	if err != nil {
		return nil, e.accountError(err, m.options.Profile)
	}
	secrets, err := account.secrets(ctx)
	if err != nil {
		return nil, e.accountError(err, m.options.Profile)
	}
	e.redactor = newRedactor(append(secrets, urlPassword(m.options.BaseURL))...)
	body, err := json.Marshal(m.params(req))
	if err != nil {
		return nil, e.errorf(agent.ErrRequest, "", "the request cannot be encoded: %s", e.clean(err.Error()))
	}
	var resp *http.Response
	client := bedrockruntime.NewFromConfig(account.config, func(o *bedrockruntime.Options) {
		o.HTTPClient = interceptor{e, account.client}
		o.Retryer = aws.NopRetryer{}
		if m.options.BaseURL != "" {
			o.BaseEndpoint = aws.String(m.options.BaseURL)
		}
		o.APIOptions = append(o.APIOptions, withBody(body), keepResponse(&resp))
	})
	_, err = client.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{ModelId: aws.String(m.model)})
	var failure *agent.ModelError
	var sent *url.Error
	if err != nil && !errors.As(err, &failure) && !errors.As(err, &sent) {
		return nil, e.errorf(agent.ErrRequest, "check the region and the base URL", "the request could not be made: %s", e.clean(innermost(err).Error()))
	}
	return resp, err
}

// withBody replaces the body that the SDK made. Its encoder of tool inputs sorts
// their keys and refuses an empty one; what a model wrote goes back as it was.
func withBody(body []byte) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Serialize.Add(middleware.SerializeMiddlewareFunc("Body",
			func(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (middleware.SerializeOutput, middleware.Metadata, error) {
				if req, ok := in.Request.(*smithyhttp.Request); ok {
					// Only a ReadSeeker: what smithy makes of a reader with WriteTo
					// drops the connection when the answer comes very soon.
					withStream, err := req.SetStream(struct{ io.ReadSeeker }{bytes.NewReader(body)})
					if err != nil {
						return middleware.SerializeOutput{}, middleware.Metadata{}, err
					}
					in.Request = withStream
				}
				return next.HandleSerialize(ctx, in)
			}), middleware.After)
	}
}

// keepResponse puts the response into resp, and keeps the SDK from reading it.
func keepResponse(resp **http.Response) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		stack.Deserialize.Clear()
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("KeepResponse",
			func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
				out, metadata, err := next.HandleDeserialize(ctx, in)
				if raw, ok := out.RawResponse.(*smithyhttp.Response); ok && err == nil {
					*resp = raw.Response
				}
				out.Result = &bedrockruntime.ConverseStreamOutput{}
				return out, metadata, err
			}), middleware.After)
	}
}

// interceptor is the SDK's HTTP client: see [endpoint.intercept].
type interceptor struct {
	endpoint *endpoint
	client   *http.Client
}

// Do implements bedrockruntime.HTTPClient.
func (i interceptor) Do(req *http.Request) (*http.Response, error) {
	return i.endpoint.intercept(req, i.client.Do)
}
