package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/store"
	"github.com/tendril-agent/tendril/internal/testkit"
)

const examples = "../../examples"

// garden is a small internet: every name but those of registries leads to it.
type garden struct{ server *httptest.Server }

func (garden) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if strings.HasSuffix(host, ".example.com.") {
		return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, network, host)
}

func (g garden) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if strings.HasPrefix(address, "203.0.113.7:") {
		address = g.server.Listener.Addr().String()
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

const issuesToken = "canary-of-the-issue-server"

func newGarden(t *testing.T) garden {
	files := http.FileServer(http.Dir(filepath.Join(examples, "data")))
	g := garden{httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api/issues":
			files.ServeHTTP(w, r)
		case r.Header.Get("Authorization") != "Bearer "+issuesToken:
			w.WriteHeader(http.StatusUnauthorized)
		default:
			fmt.Fprintf(w, `[{"number":7,"title":"Water the ferns of %s","body":"long"}]`, r.URL.Query().Get("repository"))
		}
	}))}
	t.Cleanup(g.server.Close)
	return g
}

// yes allows everything.
type yes struct{}

func (yes) Approve(context.Context, capability.Question) (capability.Answer, error) {
	return capability.AllowAlways, nil
}

// tokens are secrets that are set.
type tokens map[string]string

func (s tokens) Value(_ context.Context, name string) (string, error) { return s[name], nil }

// The capabilities in examples do what they say, with their dependencies from the
// public registry.
func TestExamples(t *testing.T) {
	g, ws, home := newGarden(t), t.TempDir(), t.TempDir()
	if err := os.CopyFS(ws, os.DirFS(filepath.Join(examples, "data"))); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Memory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	runner := &sandbox.Runner{Deno: sandbox.Deno{Path: testkit.Deno(t)}, Home: home, Self: "/proc/self/exe", Resolver: g, Dial: g.dial}
	registry, err := capability.Open(t.Context(), capability.Options{Workspace: ws, DB: db, Checker: runner, Approver: yes{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	executor := &agent.Executor{Registry: registry, Runner: runner, Workspace: ws, Secrets: tokens{"ISSUES_TOKEN": issuesToken}}
	for _, tt := range []struct{ name, args, want, file string }{
		{"fetch_page_text", `{"url":"http://garden.example.com/page.html"}`, `(?s)"title":"How to water a fern".*never let the pot stand in water`, ""},
		{"read_spreadsheet", `{"file":"sales.xlsx"}`, `"sheet":"Sales","total":3.*"month":"March","sold":15`, ""},
		{"query_sqlite", `{"file":"books.sqlite","sql":"SELECT title FROM books WHERE year > ? ORDER BY year","values":[1950]}`, `"Solaris".*"The Dispossessed"`, ""},
		{"resize_image", `{"file":"photo.png","maxWidth":16,"output":"small.png"}`, `"to":\[16,12\]`, "small.png"},
		{"parse_feed", `{"url":"http://garden.example.com/feed.xml"}`, `"Garden news".*"Ferns in winter","link":"https://garden.example.com/ferns"`, ""},
		{"list_issues", `{"server":"http://issues.example.com","repository":"garden/ferns"}`, `^\[\{"number":7,"title":"Water the ferns of garden/ferns"\}\]$`, ""},
		{"fill_pdf_form", `{"file":"form.pdf","fields":{"name":"Ada Lovelace"},"output":"filled.pdf"}`, `"filled":1,"of":2`, "filled.pdf"},
		{"markdown_to_html", `{"file":"notes.md"}`, `"title":"Reading list","file":"notes.html"`, "notes.html"},
		{"summarise_csv", `{"file":"cities.csv"}`, `"name":"population","kind":"number","empty":1,"min":231800`, ""},
		{"diff_json", `{"before":"before.json","after":"after.json"}`, `"same":false,"total":3`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			registerExample(t, registry, tt.name)
			if len(hostsOf(t, tt.name)) > 0 && !runner.Layer(t.Context()).On {
				t.Skip("needs the egress proxy, and so the operating system layer")
			}
			x, err := executor.Execute(t.Context(), tt.name, json.RawMessage(tt.args), "", func(agent.Progress) {})
			if err != nil {
				t.Fatal(err)
			}
			if x.Outcome != sandbox.OK || !regexp.MustCompile(tt.want).MatchString(x.Text) || strings.Contains(x.Text, issuesToken) {
				t.Errorf("%s: %s", x.Outcome, x.Text)
			}
			if tt.file != "" && (len(x.Files) != 1 || x.Files[0].Path != tt.file || x.Files[0].Bytes == 0) {
				t.Errorf("files %+v", x.Files)
			}
		})
	}
}

func registerExample(t *testing.T, registry *capability.Registry, name string) {
	t.Helper()
	base := filepath.Join(examples, "capabilities", name)
	code, err := os.ReadFile(base + ".ts")
	if err != nil {
		t.Fatal(err)
	}
	_, err = registry.Register(t.Context(), exampleDefinition(t, name), string(code), capability.Provenance{}, nil)
	var refusal *capability.Refusal
	if errors.As(err, &refusal) && refusal.Step == capability.StepDependencies && strings.Contains(err.Error(), "cannot be reached") {
		t.Skip("the registry of npm cannot be reached")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func exampleDefinition(t *testing.T, name string) capability.Definition {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(examples, "capabilities", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	def, err := capability.ParseDefinition(raw)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// hostsOf are the hosts that an example declares.
func hostsOf(t *testing.T, name string) []string {
	t.Helper()
	if p := exampleDefinition(t, name).Permissions; p != nil {
		return p.Net
	}
	return nil
}
