package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tendril-agent/tendril/internal/cli"
	"github.com/tendril-agent/tendril/internal/sandbox/jail"
	"github.com/tendril-agent/tendril/internal/testkit"
)

func TestMain(m *testing.M) {
	jail.Main()
	testscript.Main(m, map[string]func(){
		"tendril": func() {
			std := cli.System()
			std.Keychain = testKeychain()
			os.Exit(cli.Main(os.Args[1:], std))
		},
	})
}

// TestScripts runs the files of testdata/script: the real command, as a process
// of its own, against a scripted provider on a real socket. Beside testscript's
// own commands they know
//
//	provider openai|anthropic FILE   starts a provider that plays FILE and configures it
//	requests N                       the provider got N requests, all of which real ones accept
//	request N TEXT                   the N-th request (from 1) holds TEXT
//	noprocess TEXT                   no process of this test has TEXT in its command line
//	code N COMMAND…                  COMMAND ends with exit code N
//	waitfor FILE                     waits until FILE exists
//	server FILE                      starts a server that answers as FILE says, at $SERVER (server_test.go)
//	asked TEXT                       that server got a request that holds TEXT
func TestScripts(t *testing.T) {
	deno := testkit.Deno(t)
	cases, err := filepath.Abs("../../testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:             "testdata/script",
		ContinueOnError: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				return err
			}
			env.Setenv("GORACE", "atexit_sleep_ms=10") // not a second for each command
			env.Setenv("HOME", home)
			env.Setenv("TENDRIL_HOME", filepath.Join(home, ".tendril"))
			env.Setenv("WS", filepath.Join(env.WorkDir, "ws"))
			env.Setenv("DENO_PATH", deno)
			env.Setenv("CASES", cases)
			env.Setenv("EXAMPLES", filepath.Join(cases, "..", "..", "examples"))
			env.Values[serverKey{}] = &scriptServer{}
			env.Values[providerKey{}] = &scriptProvider{cases: cases}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"provider":  cmdProvider,
			"requests":  cmdRequests,
			"request":   cmdRequest,
			"noprocess": cmdNoProcess,
			"code":      cmdCode,
			"waitfor":   cmdWaitFor,
			"server":    cmdServer,
			"asked":     cmdAsked,
		},
	})
}

type providerKey struct{}

// scriptProvider is the provider of one script.
type scriptProvider struct {
	cases    string
	provider *testkit.Provider
}

func providerOf(ts *testscript.TestScript) *scriptProvider {
	return ts.Value(providerKey{}).(*scriptProvider)
}

// replyFile is one reply in a provider file. Either Case names a handed stream,
// or the reply is built from the rest.
type replyFile struct {
	Case     string            `json:"case"`
	Text     string            `json:"text"`
	Calls    []callFile        `json:"calls"`
	Usage    bool              `json:"usage"`
	Finish   string            `json:"finish"`
	Status   int               `json:"status"`
	Error    string            `json:"error"`
	Split    string            `json:"split"`
	GapMS    int               `json:"gap_ms"`
	DelayMS  int               `json:"delay_ms"`
	End      string            `json:"end"`
	Register *registration     `json:"register"`
	Headers  map[string]string `json:"headers"`
}

type callFile struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// registration is shorthand for a registerCapability call with code in a file.
type registration struct {
	Name        string          `json:"name"`
	Code        string          `json:"code"` // a file of the script
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Permissions json.RawMessage `json:"permissions,omitempty"`
}

func cmdProvider(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: provider openai|anthropic FILE")
	}
	var list []replyFile
	if err := json.Unmarshal([]byte(ts.ReadFile(args[1])), &list); err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	p := providerOf(ts)
	var replies []testkit.Reply
	for i, r := range list {
		replies = append(replies, r.build(ts, args[0], p.cases, i))
	}
	provider, err := testkit.Serve(testkit.Script{Steps: replies}.Answer)
	ts.Check(err)
	ts.Defer(provider.Close)
	p.provider = provider
	configureProvider(ts, args[0], provider.URL)
}

// configureProvider writes the settings that lead to a provider.
func configureProvider(ts *testscript.TestScript, kind, url string) {
	if kind == "openai" {
		url += "/v1"
	}
	ts.Check(os.MkdirAll(ts.Getenv("TENDRIL_HOME"), 0o700))
	settings := map[string]any{}
	if old, err := os.ReadFile(filepath.Join(ts.Getenv("TENDRIL_HOME"), "config.json")); err == nil {
		ts.Check(json.Unmarshal(old, &settings))
	}
	settings["workspace"] = ts.Getenv("WS")
	settings["model"] = map[string]any{"provider": kind, kind: map[string]string{"modelId": "scripted", "baseURL": url}}
	raw, err := json.Marshal(settings)
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("TENDRIL_HOME"), "config.json"), raw, 0o600))
	ts.Setenv(strings.ToUpper(kind)+"_API_KEY", "sk-canary-"+kind+"-0123456789abcdef")
}

func (r replyFile) build(ts *testscript.TestScript, kind, cases string, n int) testkit.Reply {
	reply := r.body(ts, kind, cases, n)
	if r.Status != 0 {
		reply.Status = r.Status
	}
	reply.Delay = time.Duration(r.DelayMS) * time.Millisecond
	reply.Split, reply.Gap, reply.End = r.Split, time.Duration(r.GapMS)*time.Millisecond, r.End
	for k, v := range r.Headers {
		if reply.Headers == nil {
			reply.Headers = map[string]string{}
		}
		reply.Headers[k] = v
	}
	return reply
}

func (r replyFile) body(ts *testscript.TestScript, kind, cases string, n int) testkit.Reply {
	switch {
	case r.Case != "":
		reply, err := testkit.LoadReply(filepath.Join(cases, filepath.FromSlash(r.Case)))
		ts.Check(err)
		return reply
	case r.Error != "":
		return testkit.JSON(r.Status, map[string]any{"error": map[string]string{"message": r.Error, "type": "error"}})
	}
	turn := testkit.Turn{Text: r.Text, Finish: r.Finish}
	if r.Usage {
		turn.Usage = &testkit.Usage{Input: 10, Output: 5}
	}
	for i, c := range r.Calls {
		turn.Calls = append(turn.Calls, testkit.Call{ID: fmt.Sprintf("call_%d_%d", n, i), Name: c.Name, Args: string(c.Args)})
	}
	if r.Register != nil {
		turn.Calls = append(turn.Calls, testkit.Call{ID: fmt.Sprintf("call_%d_r", n), Name: "registerCapability", Args: r.Register.input(ts)})
	}
	if kind == "anthropic" {
		return testkit.Anthropic(turn)
	}
	return testkit.OpenAI(turn)
}

func (r registration) input(ts *testscript.TestScript) string {
	definition := map[string]any{
		"name": r.Name, "capability": "Does what the script " + r.Name + " says.",
		"triggers": []string{"the script asks for " + r.Name, "the test asks for " + r.Name}, "suppression": []string{},
	}
	if r.Parameters != nil {
		definition["parameters"] = r.Parameters
	}
	if r.Permissions != nil {
		definition["permissions"] = r.Permissions
	}
	raw, err := json.Marshal(map[string]any{"definition": definition, "code": ts.ReadFile(r.Code)})
	ts.Check(err)
	return string(raw)
}

func cmdRequests(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	requests := providerOf(ts).provider.Requests()
	if (len(requests) == want) == neg {
		ts.Fatalf("the provider got %d requests", len(requests))
	}
	if broken := testkit.Lint(requests); len(broken) > 0 {
		ts.Fatalf("real providers refuse:\n%s", strings.Join(broken, "\n"))
	}
}

func cmdRequest(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	requests := providerOf(ts).provider.Requests()
	if n < 1 || n > len(requests) {
		ts.Fatalf("the provider got %d requests", len(requests))
	}
	said := conversation(ts, requests[n-1].Body)
	if strings.Contains(said, args[1]) == neg {
		ts.Fatalf("request %d:\n%s", n, said)
	}
}

// conversation is every text of a request's messages but the system prompt, a
// line each; arguments that are JSON in a string are texts, too.
func conversation(ts *testscript.TestScript, body []byte) string {
	var request struct {
		Messages []json.RawMessage `json:"messages"`
	}
	ts.Check(json.Unmarshal(body, &request))
	var lines []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			lines = append(lines, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k])
			}
		}
	}
	for _, m := range request.Messages {
		var message map[string]any
		ts.Check(json.Unmarshal(m, &message))
		if message["role"] != "system" {
			walk(message)
		}
	}
	return strings.Join(lines, "\n")
}

// cmdNoProcess fails while a process of the script's own folder is alive.
func cmdNoProcess(ts *testscript.TestScript, neg bool, args []string) {
	deadline := time.Now().Add(5 * time.Second)
	for {
		found := processes(ts.Getenv("WORK"), args[0])
		if len(found) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("still alive: %s", strings.Join(found, "\n"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// processes lists the command lines that name both texts (Linux only: elsewhere
// there is no /proc, and nothing is found).
func processes(texts ...string) []string {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	var found []string
next:
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		line := strings.ReplaceAll(string(raw), "\x00", " ")
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// cmdCode runs a command and compares its exit code.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	deadline := time.Now().Add(30 * time.Second)
	for _, file := range args {
		for {
			if _, err := os.Stat(ts.MkAbs(file)); err == nil {
				break
			}
			if time.Now().After(deadline) {
				ts.Fatalf("%s did not appear", file)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
