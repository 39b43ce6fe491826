package model_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/model"
	"github.com/tendril-agent/tendril/internal/testkit"
)

func bedrock(url, id string) agent.Model {
	return model.NewBedrock(model.BedrockOptions{ModelID: id, Region: "us-east-1", BaseURL: url})
}

func said(text string) [2]string {
	return [2]string{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"` + text + `"}}`}
}

// TestBedrock_Exceptions keeps the text that came before a failure inside of a
// reply whose status said success.
func TestBedrock_Exceptions(t *testing.T) {
	tests := []struct {
		name, payload string
		kind          agent.ErrorKind
	}{
		{"throttlingException", `{"message":"Too many tokens, please wait before trying again."}`, agent.ErrRateLimit},
		{"serviceUnavailableException", `{"message":"busy"}`, agent.ErrOverloaded},
		{"internalServerException", `{"message":"oops"}`, agent.ErrOverloaded},
		{"modelStreamErrorException", `{"message":"the model failed","originalStatusCode":500}`, agent.ErrOverloaded},
		{"validationException", `{"message":"Input is too long for requested model."}`, agent.ErrOverflow},
		{"validationException", `{"message":"something else"}`, agent.ErrRequest},
		{"newException", `{"message":"new"}`, agent.ErrOverloaded},
		{"newException", `no JSON`, agent.ErrOverloaded},
		{"newException", ``, agent.ErrOverloaded},
	}
	for _, tt := range tests {
		reply := testkit.BedrockEvents([2]string{"messageStart", `{}`}, said("par"), said("tial"), [2]string{tt.name, tt.payload},
			[2]string{"messageStop", `{"stopReason":"end_turn"}`})
		if o := play(t, dialects[3], reply); o.text != "partial" || o.kind() != tt.kind {
			t.Errorf("%s %s: text %q, %v", tt.name, tt.payload, o.text, o.err)
		}
	}
}

func TestBedrock_OddStreams(t *testing.T) {
	const useA = `{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t","name":"a"}}}`
	const useB = `{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"u","name":"b"}}}`
	input := func(index, s string) [2]string {
		return [2]string{"contentBlockDelta", `{"contentBlockIndex":` + index + `,"delta":{"toolUse":{"input":"` + s + `"}}}`}
	}
	stop := [2]string{"messageStop", `{"stopReason":"tool_use"}`}
	usage := [2]string{"metadata", `{"usage":{"inputTokens":3,"outputTokens":4}}`}
	tests := []struct {
		name   string
		events [][2]string
		calls  []string
		text   string
		kind   agent.ErrorKind
	}{
		{"unknown events and blocks", [][2]string{{"newEvent", `{"x":1}`}, {"contentBlockStart", `{"contentBlockIndex":0,"start":{"image":{}}}`}, {"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"citation":{}}}`}, said("a"), stop, usage}, nil, "a", ""},
		{"blocks never stopped, interleaved", [][2]string{{"contentBlockStart", useA}, {"contentBlockStart", useB}, input("1", `{\"y\":`), input("0", `{\"x\":1`), input("1", `2}`), input("0", `}`), stop, usage}, []string{`t a {"x":1}`, `u b {"y":2}`}, "", ""},
		{"no figures", [][2]string{said("a"), stop}, nil, "a", ""},
		{"figures first", [][2]string{said("a"), usage, stop}, nil, "a", ""},
		{"no end", [][2]string{said("a"), usage}, nil, "a", agent.ErrMalformed},
		{"an open call and no end", [][2]string{{"contentBlockStart", useA}, input("0", `{}`)}, nil, "", agent.ErrMalformed},
		{"input of no block", [][2]string{input("7", `{`), {"contentBlockStop", `{"contentBlockIndex":9}`}, stop, usage}, nil, "", ""},
		{"a payload that is none", [][2]string{said("a"), {"contentBlockDelta", `{broken`}, stop}, nil, "a", agent.ErrMalformed},
		{"nothing readable came", [][2]string{said("a"), {"messageStop", `{"stopReason":"malformed_tool_use"}`}, usage}, nil, "a", agent.ErrMalformed},
		{"a broken call came", [][2]string{{"contentBlockStart", useA}, input("0", `{\"x\":`), {"messageStop", `{"stopReason":"malformed_tool_use"}`}, usage}, []string{"t a malformed"}, "", ""},
		{"figures that are none", [][2]string{said("a"), stop, {"metadata", `{"usage":{"inputTokens":-1,"outputTokens":"many"}}`}}, nil, "a", ""},
	}
	for _, tt := range tests {
		o := play(t, dialects[3], testkit.BedrockEvents(tt.events...))
		if o.text != tt.text || o.kind() != tt.kind {
			t.Errorf("%s: text %q, %v", tt.name, o.text, o.err)
		}
		if got, want := strings.Join(callTexts(o.calls), "\n"), strings.Join(tt.calls, "\n"); got != want {
			t.Errorf("%s: calls\n%s\nwant\n%s", tt.name, got, want)
		}
	}
}

// TestBedrock_Damage flips each byte of a reply: the checksums find it, and no
// call of such a reply comes out.
func TestBedrock_Damage(t *testing.T) {
	good := testkit.BedrockCalls(testkit.Call{ID: "c", Name: "execute", Args: `{"name":"x"}`})
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		reply := good
		reply.Body = append([]byte(nil), good.Body...)
		reply.Body[r.N] ^= 0x41
		return reply
	})
	m := bedrock(p.URL, "m")
	tail := strings.LastIndex(string(good.Body), "metadata") - 40 // from here on the calls are complete
	for i := range tail {
		if o := run(t, t.Context(), m, ask); o.err == nil || len(o.calls) > 0 || o.kind() != agent.ErrMalformed && o.kind() != agent.ErrCut {
			t.Errorf("byte %d: %d calls, %v", i, len(o.calls), o.err)
		}
	}
}

func TestBedrock_ErrorClasses(t *testing.T) {
	tests := []struct {
		status        int
		typ, message  string
		kind          agent.ErrorKind
		says, advises string
	}{
		{400, "ValidationException", "Input is too long for requested model.", agent.ErrOverflow, "too long", "new session"},
		{400, "ValidationException", "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum", agent.ErrOverflow, "210000", "new session"},
		{400, "ValidationException", "This model doesn't support tool use.", agent.ErrNoTools, "", "tool calling"},
		{400, "ValidationException", "This model doesn't support tool use in streaming mode.", agent.ErrNoTools, "streaming", "tool calling"},
		{400, "ValidationException", "The provided model identifier is invalid.", agent.ErrModelNotFound, "", "region"},
		{400, "ValidationException", "Invocation of model ID anthropic.claude-x with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.", agent.ErrModelNotFound, "claude-x", "us.anthropic."},
		{400, "ValidationException", "something else", agent.ErrRequest, "something else", ""},
		{403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", agent.ErrCredentials, "access", "enable access"},
		{403, "AccessDeniedException:http://internal.amazon.com/x", "User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModelWithResponseStream", agent.ErrCredentials, "not authorized", "allow bedrock:"},
		{403, "ExpiredTokenException", "The security token included in the request is expired", agent.ErrCredentials, "expired", "log in again"},
		{403, "UnrecognizedClientException", "The security token included in the request is invalid.", agent.ErrCredentials, "invalid", "AWS_PROFILE"},
		{403, "InvalidSignatureException", "The request signature we calculated does not match", agent.ErrCredentials, "signature", "AWS_PROFILE"},
		{404, "ResourceNotFoundException", "The model is at its end of life.", agent.ErrModelNotFound, "end of life", "region"},
		{429, "ThrottlingException", "Too many tokens, please wait before trying again.", agent.ErrRateLimit, "Too many", ""},
		{400, "ThrottlingException", "Rate exceeded", agent.ErrRateLimit, "exceeded", ""},
		{408, "ModelTimeoutException", "took too long", agent.ErrOverloaded, "too long", "later"},
		{424, "ModelErrorException", "the model failed", agent.ErrOverloaded, "failed", "later"},
		{429, "ModelNotReadyException", "not ready", agent.ErrRateLimit, "", ""},
		{500, "InternalServerException", "oops", agent.ErrOverloaded, "oops", "later"},
		{503, "ServiceUnavailableException", "busy", agent.ErrOverloaded, "busy", "later"},
	}
	for _, tt := range tests {
		inHeader := testkit.JSON(tt.status, map[string]any{"message": tt.message})
		inHeader.Headers["X-Amzn-Errortype"] = tt.typ
		inBody := testkit.JSON(tt.status, map[string]any{"__type": "com.amazon.coral#" + tt.typ, "Message": tt.message})
		for _, reply := range []testkit.Reply{inHeader, inBody} {
			o := play(t, dialects[3], reply)
			if o.kind() != tt.kind || !strings.Contains(o.err.Error(), tt.says) || !strings.Contains(o.err.Error(), tt.advises) {
				t.Errorf("%d %s: %s, %v", tt.status, tt.typ, o.kind(), o.err)
			}
		}
	}
}

// noCredentials empties the AWS chain of this process.
func noCredentials(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
}

// configure makes config the AWS configuration file.
func configure(t *testing.T, config string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", path)
	t.Setenv("HOME", filepath.Dir(path))
	t.Setenv("USERPROFILE", filepath.Dir(path))
}

func TestBedrock_Accounts(t *testing.T) {
	const sso = "[profile work]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = dev\n[sso-session corp]\nsso_start_url = https://corp.example\nsso_region = us-east-1\n"
	tests := []struct {
		name, config, profile, region string
		kind                          agent.ErrorKind
		says                          []string
	}{
		{"nothing", "", "", "us-east-1", agent.ErrCredentials, []string{"no AWS credentials", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"}},
		{"no region", "", "", "", agent.ErrRequest, []string{"no AWS region", "AWS_REGION"}},
		{"no such profile", sso, "home", "us-east-1", agent.ErrCredentials, []string{`no profile "home"`, "list-profiles"}},
		{"no SSO login", sso, "work", "us-east-1", agent.ErrCredentials, []string{"SSO", "`aws sso login --profile work`"}},
		{"no login", "[profile work]\nlogin_session = arn:aws:iam::1:user/x\n", "work", "us-east-1", agent.ErrCredentials, []string{"`aws login --profile work`"}},
		{"a process that fails", "[profile work]\ncredential_process = false\n", "work", "us-east-1", agent.ErrCredentials, []string{"cannot be used", `profile "work"`}},
		{"a broken file", "[profile work\n", "work", "us-east-1", agent.ErrCredentials, []string{"profile"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noCredentials(t)
			configure(t, tt.config)
			p := testkit.NewProvider(t)
			m := model.NewBedrock(model.BedrockOptions{ModelID: "m", Region: tt.region, Profile: tt.profile, BaseURL: p.URL})
			o := run(t, t.Context(), m, ask)
			if o.kind() != tt.kind || len(p.Requests()) > 0 {
				t.Errorf("%s, %d requests: %v", o.kind(), len(p.Requests()), o.err)
			}
			for _, says := range tt.says {
				if !strings.Contains(o.err.Error(), says) {
					t.Errorf("%v does not say %s", o.err, says)
				}
			}
		})
	}
}

// TestBedrock_ComesBack: what was missing is looked for again.
func TestBedrock_ComesBack(t *testing.T) {
	noCredentials(t)
	p := testkit.NewProvider(t, testkit.BedrockText("x"))
	m := model.NewBedrock(model.BedrockOptions{ModelID: "m", BaseURL: p.URL})
	if o := run(t, t.Context(), m, ask); o.kind() != agent.ErrRequest {
		t.Errorf("got %v", o.err)
	}
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	if o := run(t, t.Context(), m, ask); o.text != "x" {
		t.Errorf("got %v", o.err)
	}
	if signed := p.Requests()[0].Headers.Get("Authorization"); !strings.Contains(signed, "/eu-central-1/bedrock/") {
		t.Errorf("signed %s", signed)
	}
}

func TestBedrock_Profile(t *testing.T) {
	configure(t, "[profile work]\nregion = eu-west-1\naws_access_key_id = AKIDWORK\naws_secret_access_key = s\n")
	p := testkit.NewProvider(t, testkit.BedrockText("x"))
	m := model.NewBedrock(model.BedrockOptions{ModelID: "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.x/y", Profile: "work", BaseURL: p.URL})
	if o := run(t, t.Context(), m, ask); o.text != "x" {
		t.Fatal(o.err)
	}
	r := p.Requests()[0]
	if signed := r.Headers.Get("Authorization"); !strings.Contains(signed, "Credential=AKIDWORK/") || !strings.Contains(signed, "/eu-west-1/") {
		t.Errorf("signed %s", signed)
	}
	if r.Path != "/model/arn:aws:bedrock:eu-west-1:1:inference-profile/eu.x/y/converse-stream" {
		t.Errorf("path %s", r.Path)
	}
}

// TestBedrock_MetadataService is bounded where it does not answer, and stops
// waiting with ctx.
func TestBedrock_MetadataService(t *testing.T) {
	noCredentials(t)
	ended := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	defer service.Close()
	defer close(ended)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", service.URL)
	if o := run(t, t.Context(), bedrock("http://127.0.0.1:1", "m"), ask); o.kind() != agent.ErrCredentials || !strings.Contains(o.err.Error(), "no AWS credentials") {
		t.Errorf("got %v", o.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if o := run(t, ctx, bedrock("http://127.0.0.1:1", "m"), ask); !errors.Is(o.err, context.DeadlineExceeded) {
		t.Errorf("got %v", o.err)
	}
}

// TestBedrock_BearerToken needs TLS: the SDK sends such a token over nothing
// else. AWS_CA_BUNDLE tells it what to trust.
func TestBedrock_BearerToken(t *testing.T) {
	noCredentials(t)
	var authorization string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		_, _ = w.Write(testkit.BedrockText("x").Body)
	}))
	defer server.Close()
	t.Setenv("AWS_CA_BUNDLE", certificateFile(t, server.Certificate()))
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-0123456789")
	if o := run(t, t.Context(), bedrock(server.URL, "m"), ask); o.text != "x" || authorization != "Bearer bedrock-api-key-0123456789" {
		t.Errorf("authorization %q, %v", authorization, o.err)
	}
	t.Setenv("AWS_CA_BUNDLE", filepath.Join(t.TempDir(), "none.pem"))
	if o := run(t, t.Context(), bedrock(server.URL, "m"), ask); o.kind() != agent.ErrCertificate || !strings.Contains(o.err.Error(), "AWS_CA_BUNDLE") {
		t.Errorf("got %v", o.err)
	}
	plain := testkit.NewProvider(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	if o := run(t, t.Context(), bedrock(plain.URL, "m"), ask); o.kind() != agent.ErrRequest || len(plain.Requests()) > 0 {
		t.Errorf("without TLS: %v", o.err)
	}
}

func certificateFile(t *testing.T, c *x509.Certificate) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBedrock_SaysNoSecrets of the session either, which AWS echoes in an error
// about a signature.
func TestBedrock_SaysNoSecrets(t *testing.T) {
	t.Setenv("AWS_SESSION_TOKEN", "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVz")
	for _, reply := range []testkit.Reply{
		testkit.JSON(403, map[string]any{"message": "The Canonical String should have been x-amz-security-token:IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVz key " + secretKey}),
		testkit.BedrockEvents([2]string{"validationException", `{"message":"token IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVz"}`}),
	} {
		if o := play(t, dialects[3], reply); o.err == nil || strings.Contains(o.err.Error(), "IQoJb3Jp") || strings.Contains(o.err.Error(), secretKey[:10]) {
			t.Errorf("got %v", o.err)
		}
	}
}

// TestBedrock_ProcessOutput is full of secrets when it cannot be read.
func TestBedrock_ProcessOutput(t *testing.T) {
	noCredentials(t)
	configure(t, "[default]\ncredential_process = echo '{\"Version\":1,\"SecretAccessKey\":\"hunter2hunter2\"'\n")
	if o := run(t, t.Context(), bedrock("http://127.0.0.1:1", "m"), ask); o.kind() != agent.ErrCredentials || strings.Contains(o.err.Error(), "hunter2") {
		t.Errorf("got %v", o.err)
	}
}

// TestBedrock_Families sends what a family of models takes, and no more.
func TestBedrock_Families(t *testing.T) {
	req := ask
	req.Messages = append(req.Messages,
		agent.Message{Role: agent.RoleAssistant, Blocks: []agent.Block{{Type: agent.BlockCall, Call: &agent.Call{ID: "a", Name: "f", Input: json.RawMessage(`{"":1,"b":1.10,"a":2}`)}}}},
		agent.Message{Role: agent.RoleTool, Blocks: []agent.Block{{Type: agent.BlockResult, CallID: "a", Text: "no", IsError: true}}})
	tests := []struct {
		id            string
		points        int
		status, tools bool
	}{
		{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", 4, true, true},
		{"arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-opus-9", 4, true, true},
		{"anthropic.claude-3-7-sonnet-20250219-v1:0", 4, true, true},
		{"anthropic.claude-3-5-haiku-20241022-v1:0", 4, true, true},
		{"anthropic.claude-3-5-sonnet-20241022-v2:0", 0, true, false},
		{"anthropic.claude-3-haiku-20240307-v1:0", 0, true, false},
		{"us.amazon.nova-pro-v1:0", 2, true, false},
		{"meta.llama3-1-70b-instruct-v1:0", 0, false, false},
		{"arn:aws:bedrock:us-east-1:1:application-inference-profile/abc", 0, false, false},
	}
	for _, tt := range tests {
		p := testkit.NewProvider(t, testkit.BedrockText("x"))
		run(t, t.Context(), bedrock(p.URL, tt.id), req)
		body := string(p.Requests()[0].Body)
		if strings.Count(body, `"cachePoint"`) != tt.points || strings.Contains(body, `"status":"error"`) != tt.status {
			t.Errorf("%s: %s", tt.id, body)
		}
		if _, tools, _ := strings.Cut(body, `"toolConfig"`); strings.Contains(tools, "cachePoint") != tt.tools {
			t.Errorf("%s: %s", tt.id, tools)
		}
		if !strings.Contains(body, `{"":1,"b":1.10,"a":2}`) || strings.Contains(body, "inferenceConfig") {
			t.Errorf("%s: %s", tt.id, body)
		}
		if broken := testkit.Lint(p.Requests()); len(broken) > 0 {
			t.Errorf("%s: %v", tt.id, broken)
		}
	}
}

// TestBedrock_ToolsOfThePast stand in where a request has calls but no tools.
func TestBedrock_ToolsOfThePast(t *testing.T) {
	req := agent.Request{Messages: ask.Messages}
	use := func(id, name string) agent.Block {
		return agent.Block{Type: agent.BlockCall, Call: &agent.Call{ID: id, Name: name}}
	}
	p := testkit.NewProviderFunc(t, func(testkit.Request) testkit.Reply { return testkit.BedrockText("x") })
	m := model.NewBedrock(model.BedrockOptions{ModelID: "m", Region: "us-east-1", BaseURL: p.URL, MaxTokens: 77})
	run(t, t.Context(), m, req)
	req.Messages = append(req.Messages, agent.Message{Role: agent.RoleAssistant, Blocks: []agent.Block{use("a", "f"), use("b", "g"), use("c", "f")}})
	run(t, t.Context(), m, req)
	first, second := string(p.Requests()[0].Body), string(p.Requests()[1].Body)
	if strings.Contains(first, "toolConfig") || !strings.Contains(first, `"inferenceConfig":{"maxTokens":77}`) {
		t.Errorf("got %s", first)
	}
	if strings.Count(second, `"toolSpec"`) != 2 || len(testkit.Lint(p.Requests())) > 0 {
		t.Errorf("got %s", second)
	}
}
