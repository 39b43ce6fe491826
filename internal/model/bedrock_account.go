package model

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"

	"github.com/tendril-agent/tendril/internal/agent"
)

const (
	// credentialsTime bounds the search for credentials as a whole. It is as long
	// as a credential process may take, which may ask a person something.
	credentialsTime = time.Minute
	// loginTime bounds one request to AWS's login services.
	loginTime = 15 * time.Second
	// metadataTime bounds one request to the EC2 metadata service. It answers in
	// milliseconds or is not there: without any credentials a prompt fails after
	// three of these at most.
	metadataTime = time.Second
)

// bearerVariable holds a Bedrock API key. The SDK reads it by itself, and
// prefers it to credentials.
const bearerVariable = "AWS_BEARER_TOKEN_BEDROCK"

var errNoRegion = errors.New("no AWS region is set")

// awsAccount is the AWS configuration of one model, and the client for it.
type awsAccount struct {
	config aws.Config
	client *http.Client
}

// loginClient is a client for AWS's login services. It is of the one type that
// the SDK can add the authorities of AWS_CA_BUNDLE to.
func loginClient(c *http.Client) *awshttp.BuildableClient {
	login := awshttp.NewBuildableClient().WithTimeout(loginTime)
	if ours, ok := c.Transport.(*http.Transport); ok && ours.TLSClientConfig != nil {
		login = login.WithTransportOptions(func(t *http.Transport) { t.TLSClientConfig = ours.TLSClientConfig.Clone() })
	}
	return login
}

// trusting is c with the authorities of the AWS configuration.
func trusting(c *http.Client, login aws.HTTPClient) *http.Client {
	buildable, ok := login.(*awshttp.BuildableClient)
	ours, plain := c.Transport.(*http.Transport)
	if !ok || !plain {
		return c
	}
	client := *c
	transport := ours.Clone()
	if found := buildable.GetTransport().TLSClientConfig; found != nil && found.RootCAs != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: found.RootCAs, MinVersion: tls.VersionTLS12}
	}
	client.Transport = transport
	return &client
}

// account reads the configuration, once it can be read.
func (m *Bedrock) account(ctx context.Context) (*awsAccount, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.aws != nil {
		return m.aws, nil
	}
	loaded, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(m.options.Region),
		config.WithSharedConfigProfile(m.options.Profile),
		config.WithHTTPClient(loginClient(m.http)),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithLogger(logging.Nop{}),
		config.WithEC2RoleCredentialOptions(func(o *ec2rolecreds.Options) {
			o.Client = imds.New(imds.Options{
				// No proxy: the service is on this machine's link.
				HTTPClient: &http.Client{Timeout: metadataTime, Transport: &http.Transport{DisableKeepAlives: true}},
				Retryer:    aws.NopRetryer{},
			})
		}))
	if err != nil {
		return nil, err
	}
	if loaded.Region == "" {
		return nil, errNoRegion
	}
	client := m.http
	if m.options.HTTPClient == nil {
		client = trusting(client, loaded.HTTPClient)
	}
	m.aws = &awsAccount{loaded, client}
	return m.aws, nil
}

// secrets finds the credentials, which the SDK keeps until they expire, and
// returns what must not be said.
func (a *awsAccount) secrets(ctx context.Context) ([]string, error) {
	if token := os.Getenv(bearerVariable); token != "" {
		return []string{token}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTime)
	defer cancel()
	found, err := a.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	return []string{found.SecretAccessKey, found.SessionToken, found.AccessKeyID}, nil
}

// accountError describes why there are no credentials or no region.
func (e *endpoint) accountError(err error, profile string) *agent.ModelError {
	name, flag := "", ""
	if profile == "" {
		profile = os.Getenv("AWS_PROFILE")
	}
	if profile != "" {
		name, flag = fmt.Sprintf(" of the profile %q", profile), " --profile "+profile
	}
	var noProfile config.SharedConfigProfileNotExistError
	var file *fs.PathError
	var operation *net.OpError
	detail := e.clean(innermost(err).Error())
	text := strings.ToLower(err.Error())
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.Is(err, errNoRegion):
		return e.errorf(agent.ErrRequest, "set the region in the settings, or AWS_REGION", "no AWS region is set")
	case errors.As(err, &noProfile):
		return e.errorf(agent.ErrCredentials, "see `aws configure list-profiles`", "the AWS configuration has no profile %q", e.clean(noProfile.Profile))
	case says("ca bundle") || errors.As(err, &file) && file.Path == os.Getenv("AWS_CA_BUNDLE"):
		return e.errorf(agent.ErrCertificate, "correct or unset AWS_CA_BUNDLE", "the file of certificates in the AWS configuration cannot be used: %s", detail)
	case says("reauthenticate", "load login token"):
		return e.errorf(agent.ErrCredentials, "run `aws login"+flag+"`", "the AWS login%s has expired", name)
	case says("imds"): // the last place to look
		return e.errorf(agent.ErrCredentials, e.credentials, "no AWS credentials were found%s", name)
	case errors.As(err, &operation):
		return e.unreachableError(err)
	case says("sso session has expired", "sso token", "unauthorizedexception"):
		return e.errorf(agent.ErrCredentials, "run `aws sso login"+flag+"`", "the AWS SSO login%s has expired or is missing", name)
	case errors.Is(err, context.DeadlineExceeded):
		return e.errorf(agent.ErrCredentials, e.credentials, "the AWS credentials%s did not come in time", name)
	}
	return e.errorf(agent.ErrCredentials, e.credentials, "the AWS credentials%s cannot be used: %s", name, detail)
}
