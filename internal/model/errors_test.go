package model_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/model"
	"github.com/tendril-agent/tendril/internal/testkit"
)

func apiError(typ, code, message string) map[string]any {
	return map[string]any{"type": "error", "error": map[string]any{"type": typ, "code": code, "message": message}}
}

func TestErrors_Classes(t *testing.T) {
	tests := []struct {
		status int
		body   any
		kind   agent.ErrorKind
		says   string
	}{
		{401, apiError("authentication_error", "", "invalid x-api-key"), agent.ErrCredentials, "invalid x-api-key"},
		{403, apiError("permission_error", "", "not yours"), agent.ErrCredentials, "not yours"},
		{401, "", agent.ErrCredentials, ""},
		{402, apiError("billing_error", "", "pay"), agent.ErrCredentials, "credit"},
		{400, apiError("invalid_request_error", "", "Your credit balance is too low to access the API"), agent.ErrCredentials, "credit"},
		{429, apiError("insufficient_quota", "insufficient_quota", "You exceeded your current quota"), agent.ErrCredentials, "credit"},
		{400, apiError("", "", "API key not valid. Please pass a valid API key."), agent.ErrCredentials, "API key"},
		{404, apiError("not_found_error", "", "model: nope"), agent.ErrModelNotFound, "nope"},
		{404, apiError("invalid_request_error", "model_not_found", "The model does not exist"), agent.ErrModelNotFound, "model"},
		{400, apiError("", "", "x/y is not a valid model ID"), agent.ErrModelNotFound, "x/y"},
		{404, "404 page not found", agent.ErrRequest, "base URL"},
		{404, apiError("", "unknown_url", "Invalid URL (POST /v1/v1)"), agent.ErrRequest, "base URL"},
		{400, map[string]any{"error": "m does not support tools"}, agent.ErrNoTools, "tool"},
		{404, apiError("", "", "No endpoints found that support tool use"), agent.ErrNoTools, "tool"},
		{400, apiError("", "context_length_exceeded", "This model's maximum context length is 8192 tokens"), agent.ErrOverflow, "8192"},
		{400, apiError("invalid_request_error", "", "prompt is too long: 210000 tokens > 200000 maximum"), agent.ErrOverflow, "210000"},
		{413, apiError("request_too_large", "", "too large"), agent.ErrOverflow, "context"},
		{500, map[string]any{"error": map[string]any{"message": "the request exceeds the available context size"}}, agent.ErrOverflow, "context"},
		{400, apiError("", "content_filter", "flagged"), agent.ErrRefused, "flagged"},
		{429, apiError("rate_limit_error", "", "slow down"), agent.ErrRateLimit, "slow down"},
		{429, apiError("", "", "Too many requests."), agent.ErrRateLimit, ": too many requests;"},
		{429, "", agent.ErrRateLimit, "429"},
		{500, apiError("api_error", "", "oops"), agent.ErrOverloaded, "oops"},
		{503, "upstream connect error", agent.ErrOverloaded, "upstream"},
		{529, apiError("overloaded_error", "", "Overloaded"), agent.ErrOverloaded, "Overloaded"},
		{408, "", agent.ErrOverloaded, ""},
		{422, map[string]any{"detail": []string{"field required"}}, agent.ErrRequest, "field required"},
		{400, []any{apiError("", "", "in a list")}, agent.ErrRequest, "in a list"},
		{418, map[string]any{"message": "teapot"}, agent.ErrRequest, "teapot"},
		{400, map[string]any{}, agent.ErrRequest, ""},
		{200, apiError("rate_limit_error", "", "in a success"), agent.ErrRateLimit, "in a success"},
		{200, map[string]any{"choices": []any{}}, agent.ErrMalformed, "stream"},
		{204, "", agent.ErrRequest, ""},
	}
	each(t, func(t *testing.T, d dialect) {
		for _, tt := range tests {
			reply := testkit.JSON(tt.status, tt.body)
			if text, ok := tt.body.(string); ok {
				reply = testkit.Reply{Status: tt.status, Body: []byte(text)}
			}
			o := play(t, d, reply)
			if o.kind() != tt.kind || !strings.Contains(o.err.Error(), tt.says) || !strings.HasPrefix(o.err.Error(), d.name+": ") {
				t.Errorf("%d %v: %s, %v", tt.status, tt.body, o.kind(), o.err)
			}
		}
	})
}

func TestErrors_Hints(t *testing.T) {
	hints := map[string]map[int]string{
		"anthropic": {401: "ANTHROPIC_API_KEY", 404: "base URL"},
		"openai":    {401: "OPENAI_API_KEY", 404: "base URL"},
		"ollama":    {404: "`ollama pull m`"},
		"bedrock":   {401: "AWS_PROFILE", 404: "region"},
	}
	each(t, func(t *testing.T, d dialect) {
		for status, want := range hints[d.name] {
			if o := play(t, d, testkit.JSON(status, apiError("", "", "no"))); !strings.Contains(o.err.Error(), want) {
				t.Errorf("%d: %v", status, o.err)
			}
		}
	})
}

func TestErrors_RetryAfter(t *testing.T) {
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	tests := []struct {
		header, value string
		low, high     time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second, 3 * time.Second},
		{"Retry-After", "0", 0, 0},
		{"Retry-After", "3600", time.Hour, time.Hour},
		{"Retry-After", "-5", 0, 0},
		{"Retry-After", "soon", 0, 0},
		{"Retry-After", "", 0, 0},
		{"Retry-After", "99999999999999999", 24 * time.Hour, 366 * 24 * time.Hour},
		{"Retry-After", "999999999999999999999999999", 0, 0},
		{"Retry-After", date, 50 * time.Minute, time.Hour},
		{"Retry-After", "Mon, 01 Jan 2001 00:00:00 GMT", 0, 0},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond, 1500 * time.Millisecond},
	}
	each(t, func(t *testing.T, d dialect) {
		for _, tt := range tests {
			for status, kind := range map[int]agent.ErrorKind{429: agent.ErrRateLimit, 529: agent.ErrOverloaded, 503: agent.ErrOverloaded} {
				reply := testkit.JSON(status, apiError("", "", "slow"))
				reply.Headers[tt.header] = tt.value
				o := play(t, d, reply)
				failure, _ := o.err.(*agent.ModelError)
				if failure == nil || failure.Kind != kind || failure.RetryAfter < tt.low || failure.RetryAfter > tt.high {
					t.Errorf("%d %s %q: %+v", status, tt.header, tt.value, failure)
				}
			}
		}
	})
}

// TestErrors_SayNoSecrets lets a server echo the key in every way it may.
func TestErrors_SayNoSecrets(t *testing.T) {
	echoes := []string{
		"key " + secretKey + " is wrong",
		"key " + secretKey[:14] + "****** is wrong",
		"Bearer " + secretKey,
		"you sent 'Authorization: Bearer abc.def.ghi'",
		strings.Repeat("x", 380) + secretKey,
		"proxy http://user:hunter2@proxy:3128 said no",
	}
	each(t, func(t *testing.T, d dialect) {
		if d.name == "ollama" { // it has no key
			return
		}
		for _, echo := range echoes {
			for _, reply := range []testkit.Reply{
				testkit.JSON(401, apiError("authentication_error", "", echo)),
				{Status: 500, Body: []byte(echo)},
				{Body: []byte("data: " + `{"error":{"message":"` + echo + `"}}` + "\n\n")},
				{Body: []byte("data: " + echo + "\n\n")},
				{Body: []byte(echo)},
			} {
				text := play(t, d, reply).err.Error()
				for _, secret := range []string{secretKey[:12], "abc.def", "hunter2"} {
					if strings.Contains(text, secret) {
						t.Errorf("%q holds %q", text, secret)
					}
				}
			}
		}
	})
}

func TestErrors_AreOneCleanParagraph(t *testing.T) {
	hostile := "line\nline\r\n\x1b]0;pwned\a\x00 \u202etxt.exe\u2028 \x9b31m \xff\xfe " + strings.Repeat("é", 5000)
	each(t, func(t *testing.T, d dialect) {
		for _, reply := range []testkit.Reply{
			testkit.JSON(400, apiError("", "", hostile)),
			{Status: 400, Body: []byte(hostile)},
			{Body: []byte("data: " + hostile + "\n\n")},
		} {
			text := play(t, d, reply).err.Error()
			bad := strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
			if bad || len(text) > 700 || !utf8.ValidString(text) {
				t.Errorf("%d bytes: %q", len(text), text)
			}
		}
	})
}

// TestErrors_HugeBody reads only the beginning of a failure.
func TestErrors_HugeBody(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		}))
		defer server.Close()
		if o := run(t, t.Context(), d.open(server.URL, nil), ask); o.kind() != agent.ErrOverloaded {
			t.Errorf("got %v", o.err)
		}
	})
}

func TestErrors_Unreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := "http://" + listener.Addr().String()
	listener.Close()
	each(t, func(t *testing.T, d dialect) {
		o := run(t, t.Context(), d.open(free, nil), ask)
		if o.kind() != agent.ErrUnreachable || d.name == "ollama" && !strings.Contains(o.err.Error(), "ollama serve") {
			t.Errorf("got %v", o.err)
		}
		for _, address := range []string{"localhost:11434", "::", "http://us er:hunter2@host", "nonsense"} {
			o := run(t, t.Context(), d.open(address, nil), ask)
			if o.kind() != agent.ErrRequest || strings.Contains(o.err.Error(), "hunter2") {
				t.Errorf("%s: %v", address, o.err)
			}
		}
		for _, cut := range []testkit.Reply{{End: "reset", Delay: time.Millisecond}} {
			if o := play(t, d, cut); o.kind() != agent.ErrCut && o.kind() != agent.ErrUnreachable {
				t.Errorf("got %v", o.err)
			}
		}
	})
}

func TestErrors_BadCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	each(t, func(t *testing.T, d dialect) {
		o := run(t, t.Context(), d.open(server.URL, nil), ask)
		if o.kind() != agent.ErrCertificate || !strings.Contains(o.err.Error(), "certificate") || !strings.Contains(o.err.Error(), "SSL_CERT_FILE") {
			t.Errorf("got %v", o.err)
		}
	})
}

// TestRedirects_CarryNoKey: no redirect is followed, so the key stays home.
func TestRedirects_CarryNoKey(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		for _, status := range []int{301, 302, 303, 307, 308} {
			other := testkit.NewProvider(t, d.turn(testkit.Turn{Text: "stolen"}))
			first := testkit.NewProvider(t, testkit.Reply{Status: status, Headers: map[string]string{"Location": other.URL + "/x?y=z"}})
			o := run(t, t.Context(), d.open(first.URL, nil), ask)
			if o.kind() != agent.ErrRequest || !strings.Contains(o.err.Error(), other.URL) || strings.Contains(o.err.Error(), "y=z") {
				t.Errorf("%d: %v", status, o.err)
			}
			if len(other.Requests()) > 0 {
				t.Errorf("%d was followed", status)
			}
		}
	})
}

// TestProxy runs itself with a proxy in its environment, which Go reads once.
func TestProxy(t *testing.T) {
	if os.Getenv("MODEL_TEST_PROXY") != "" {
		proxied(t)
		return
	}
	reply := testkit.OpenAIText("by proxy")
	reply.Headers = map[string]string{"Connection": "close"}
	proxy := testkit.NewProvider(t, reply)
	address := strings.Replace(proxy.URL, "http://", "http://user:hunter2@", 1)
	for mode, proxyURL := range map[string]string{"works": address, "broken": "http://user:hun ter2@[", "refuses": "http://user:hunter2@127.0.0.1:1"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProxy$", "-test.v")
		cmd.Env = append(os.Environ(), "MODEL_TEST_PROXY="+mode, "HTTP_PROXY="+proxyURL, "http_proxy=", "HTTPS_PROXY="+proxyURL, "NO_PROXY=", "no_proxy=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
	if len(proxy.Requests()) != 1 {
		t.Errorf("the proxy got %d requests", len(proxy.Requests()))
	}
}

func proxied(t *testing.T) {
	local := testkit.NewProvider(t, testkit.OpenAIText("direct"))
	if o := run(t, t.Context(), dialects[1].open(local.URL, nil), ask); o.text != "direct" {
		t.Errorf("loopback: %q, %v", o.text, o.err)
	}
	far := run(t, t.Context(), dialects[1].open("http://models.example", nil), ask)
	if os.Getenv("MODEL_TEST_PROXY") == "works" {
		if far.text != "by proxy" {
			t.Errorf("far: %q, %v", far.text, far.err)
		}
		return
	}
	if far.kind() != agent.ErrUnreachable || strings.Contains(far.err.Error(), "ter2") || !strings.Contains(far.err.Error(), "prox") {
		t.Errorf("far: %v", far.err)
	}
}

// TestPassword keeps one that is part of the base URL out of errors.
func TestPassword(t *testing.T) {
	p := testkit.NewProvider(t, testkit.JSON(401, apiError("", "", "hunter2secret is wrong")))
	address := strings.Replace(p.URL, "http://", "http://me:hunter2secret@", 1)
	m := model.NewOpenAI(model.OpenAIOptions{ModelID: "m", BaseURL: address})
	if o := run(t, t.Context(), m, ask); strings.Contains(o.err.Error(), "hunter2") {
		t.Errorf("got %v", o.err)
	}
}
