package model

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
)

// maxErrorBody is how many bytes of a failure's body are read.
const maxErrorBody = 64 << 10

// maxRetryAfter bounds what a provider may ask for, so that a silly number
// cannot overflow.
const maxRetryAfter = 365 * 24 * time.Hour

// endpoint is the provider as its errors describe it. Its hints say what to do.
type endpoint struct {
	provider    string // "openai"
	model       string
	baseURL     string
	credentials string // hint: which variable holds the key
	notFound    string // hint: the model is not there
	unreachable string // hint: nothing answers
	// streamType is the media type of a reply.
	streamType string
	// stall is how long a reply may be silent; 0 is stallTime.
	stall time.Duration
	redactor
}

const baseURLHint = "check the base URL"

func (e *endpoint) errorf(kind agent.ErrorKind, hint, format string, args ...any) *agent.ModelError {
	return &agent.ModelError{Kind: kind, Message: e.provider + ": " + fmt.Sprintf(format, args...), Hint: hint}
}

// respond classifies an HTTP answer that is no stream, and closes it. It is nil
// for an answer that looks like one.
func (e *endpoint) respond(resp *http.Response) *agent.ModelError {
	if resp.StatusCode == http.StatusOK && !isPage(resp) {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return e.errorf(agent.ErrRequest, "set the base URL to the final address",
			"the server redirects to %s, which is not followed", e.clean(redirectHost(resp)))
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came is enough
	said := readErrorBody(resp.Header.Get("Content-Type"), body)
	said.types += " " + strings.ToLower(resp.Header.Get("X-Amzn-Errortype")) // AWS's place for it
	failure := e.classify(resp.StatusCode, said)
	failure.RetryAfter = retryAfter(resp.Header, time.Now())
	return failure
}

func isPage(resp *http.Response) bool {
	return strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/html")
}

func redirectHost(resp *http.Response) string {
	location, err := resp.Location()
	if err != nil {
		return "nowhere"
	}
	return location.Scheme + "://" + location.Host
}

// classify turns a status and what the provider said into an error. The words
// count before the status, because providers disagree about statuses.
func (e *endpoint) classify(status int, body errorBody) *agent.ModelError {
	if body.page {
		return e.page(status)
	}
	said := strings.ToLower(body.message) + " " + body.types
	detail := e.clean(body.message)
	if detail == "" {
		detail = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
	}
	for _, rule := range rules {
		if rule.matches(status, said) {
			return e.errorf(rule.kind, rule.hint(e), "%s", withDetail(rule.what, detail))
		}
	}
	return e.errorf(agent.ErrRequest, "", "the request was refused: %s", detail)
}

// withDetail is what happened and what the provider said of it, once when both
// are the same words.
func withDetail(what, detail string) string {
	if strings.EqualFold(what, strings.Trim(detail, " .!")) {
		return what
	}
	return what + ": " + detail
}

func (e *endpoint) page(status int) *agent.ModelError {
	kind := agent.ErrRequest
	if status >= 500 {
		kind = agent.ErrOverloaded
	}
	return e.errorf(kind, baseURLHint, "the server answered with a web page (HTTP %d)", status)
}

// rule is one line of the classification. It matches when the status is listed,
// or no status is, and one of the words is said, or there are none.
type rule struct {
	kind     agent.ErrorKind
	what     string
	statuses []int // 500 stands for every 5xx
	words    []string
	hint     func(*endpoint) string
}

func (r rule) matches(status int, said string) bool {
	if status >= 500 {
		status = 500
	}
	listed := len(r.statuses) == 0
	for _, s := range r.statuses {
		listed = listed || s == status
	}
	spoken := len(r.words) == 0
	for _, w := range r.words {
		spoken = spoken || strings.Contains(said, w)
	}
	return listed && spoken
}

func say(hint string) func(*endpoint) string { return func(*endpoint) string { return hint } }

func credentialsHint(e *endpoint) string { return e.credentials }
func notFoundHint(e *endpoint) string    { return e.notFound }
func accessHint(e *endpoint) string {
	if e.streamType != awsStream {
		return e.credentials
	}
	return "enable access to the model in the region, and allow bedrock:InvokeModelWithResponseStream"
}

// rules are tried in order.
var rules = []rule{
	{agent.ErrNoTools, "this model cannot use tools", []int{400, 404, 422, 500},
		[]string{"does not support tool", "not support tool", "support tool use", "doesn't support tool", "tools are not supported", "tool use is not supported", "tool calling is not supported", "does not support function"},
		say("choose a model that supports tool calling")},
	{agent.ErrModelNotFound, "the model is only behind an inference profile", []int{400, 500},
		[]string{"with on-demand throughput"}, say("use the id of its inference profile, such as us.anthropic.…, as the model")},
	{agent.ErrCredentials, "access was denied", nil, []string{"accessdenied"}, accessHint},
	{agent.ErrCredentials, "the credentials have expired", nil, []string{"expiredtoken", "security token included in the request is expired"}, say("log in again, or renew the credentials")},
	{agent.ErrCredentials, "the credentials were refused", nil, []string{"unrecognizedclient", "invalidsignature", "invalidclienttoken", "missingauthentication"}, credentialsHint},
	{agent.ErrCredentials, "the account cannot pay for the request", nil,
		[]string{"insufficient_quota", "credit balance", "billing_error"},
		say("check the plan and the credit of the account")},
	{agent.ErrCredentials, "the account cannot pay for the request", []int{402}, nil, say("check the plan and the credit of the account")},
	{agent.ErrCredentials, "the credentials were refused", []int{401, 403}, nil, credentialsHint},
	{agent.ErrCredentials, "the credentials were refused", nil,
		[]string{"authentication_error", "permission_error", "invalid_api_key", "api key not valid"}, credentialsHint},
	{agent.ErrRateLimit, "too many requests", []int{429}, nil, say("wait, or lower the rate of requests")},
	{agent.ErrRateLimit, "too many requests", nil, []string{"rate_limit", "throttlingexception"}, say("wait, or lower the rate of requests")},
	{agent.ErrOverflow, "the conversation is longer than the model's context", []int{413}, nil, say("start a new session or shorten the input")},
	{agent.ErrOverflow, "the conversation is longer than the model's context", []int{400, 422, 500},
		[]string{"context_length", "context length", "context size", "context window", "context limit", "maximum context", "prompt is too long", "input is too long", "too many tokens", "too many input tokens", "request_too_large"},
		say("start a new session or shorten the input")},
	{agent.ErrRefused, "the request was refused because of its content", []int{400, 422},
		[]string{"content_filter", "content_policy", "responsibleaipolicyviolation", "content management policy"}, say("rephrase the request")},
	{agent.ErrRequest, "the server does not know the address", []int{404}, []string{"page not found", "invalid url", "unknown_url"}, say(baseURLHint)},
	{agent.ErrModelNotFound, "the model was not found", []int{404}, nil, notFoundHint},
	{agent.ErrModelNotFound, "the model was not found", []int{400, 422, 500},
		[]string{"model_not_found", "not a valid model", "model not found", "not_found_error", "resourcenotfoundexception", "provided model identifier is invalid"}, notFoundHint},
	{agent.ErrOverloaded, "the server is overloaded or failing", []int{408, 409, 424, 500}, nil, say("try again later")},
	{agent.ErrOverloaded, "the server is overloaded or failing", nil, []string{"overloaded"}, say("try again later")},
}

// inStream classifies an error object that came inside of a reply whose status
// said success. Where it names no status, the server failed.
func (e *endpoint) inStream(data []byte) *agent.ModelError {
	body := readErrorBody("", data)
	status := body.status
	switch {
	case status != 0:
	case strings.Contains(body.types, "invalid_request"), strings.Contains(body.types, "validationexception"):
		status = http.StatusBadRequest
	default:
		status = http.StatusInternalServerError
	}
	return e.classify(status, body)
}

// unreachableError describes why no answer came. Its cause is put into words
// and not wrapped, because a URL in it may hold a password.
func (e *endpoint) unreachableError(err error) *agent.ModelError {
	var certificate *tls.CertificateVerificationError
	var authorities *authoritiesError
	var timeout net.Error
	text := e.clean(innermost(err).Error())
	switch {
	case errors.As(err, &certificate):
		return e.errorf(agent.ErrCertificate, "if the certificate is right, name a file with its authority in SSL_CERT_FILE",
			"the server's certificate was refused: %s", text)
	case strings.Contains(err.Error(), "invalid header field value"):
		return e.errorf(agent.ErrCredentials, e.credentials, "the key holds a line break or another character that cannot be sent")
	case errors.As(err, &authorities):
		return e.errorf(agent.ErrCertificate, "correct or unset "+authorities.variable, "%s", e.clean(authorities.Error()))
	case strings.Contains(err.Error(), "invalid proxy address"):
		return e.errorf(agent.ErrUnreachable, "check HTTPS_PROXY and HTTP_PROXY", "the proxy in the environment is no valid address")
	case strings.Contains(err.Error(), "proxyconnect"):
		return e.errorf(agent.ErrUnreachable, "check HTTPS_PROXY and HTTP_PROXY", "the proxy did not connect: %s", text)
	case errors.As(err, &timeout) && timeout.Timeout():
		return e.errorf(agent.ErrUnreachable, e.unreachable, "the server did not answer in time: %s", text)
	}
	return e.errorf(agent.ErrUnreachable, e.unreachable, "cannot reach the server: %s", text)
}

// innermost leaves out the wrappers that repeat the URL.
func innermost(err error) error {
	var operation *net.OpError
	var file *fs.PathError
	switch {
	case errors.As(err, &operation):
		return operation
	case errors.As(err, &file):
		return file
	}
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// lost describes a stream that ended too early.
func (e *endpoint) lost(format string, args ...any) *agent.ModelError {
	return e.errorf(agent.ErrCut, "try again", format, args...)
}

// broken describes a stream that made no sense.
func (e *endpoint) broken(format string, args ...any) *agent.ModelError {
	return e.errorf(agent.ErrMalformed, "try again; if it happens always, "+baseURLHint, format, args...)
}

// retryAfter reads what the provider asks to wait: retry-after-ms, or
// Retry-After in seconds or as an HTTP date. Negative values, past dates and
// junk count as nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	if ms, err := strconv.ParseInt(h.Get("Retry-After-Ms"), 10, 64); err == nil && ms > 0 {
		wait = time.Duration(min(ms, maxRetryAfter.Milliseconds())) * time.Millisecond
	} else if s, err := strconv.ParseInt(strings.TrimSpace(h.Get("Retry-After")), 10, 64); err == nil {
		wait = time.Duration(min(s, int64(maxRetryAfter/time.Second))) * time.Second
	} else if date, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
