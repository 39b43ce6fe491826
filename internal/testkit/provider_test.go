package testkit_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tendril-agent/tendril/internal/testkit"
)

const cases = "../../testdata/cases"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, url, body string) (*http.Response, []byte, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return resp, got, err
}

func TestProvider_PlaysScripts(t *testing.T) {
	p := testkit.NewProvider(t, testkit.OpenAIText("hello"), testkit.JSON(429, map[string]any{"error": "slow"}))
	for _, split := range []string{"all", "lines", "bytes", "7"} {
		reply := testkit.OpenAIText("hello")
		reply.Split = split
		q := testkit.NewProvider(t, reply)
		if _, got, err := post(t, q.URL+"/v1/x", "{}"); err != nil || !bytes.Equal(got, reply.Body) {
			t.Errorf("split %s: %v, %d bytes of %d", split, err, len(got), len(reply.Body))
		}
	}
	first, _, _ := post(t, p.URL+"/a", `{"q":1}`)
	second, body, _ := post(t, p.URL+"/b", `{"q":2}`)
	third, _, _ := post(t, p.URL+"/c", `{"q":3}`)
	if first.StatusCode != 200 || second.StatusCode != 429 || third.StatusCode != 500 || string(body) != `{"error":"slow"}` {
		t.Errorf("got %d, %d %s, %d", first.StatusCode, second.StatusCode, body, third.StatusCode)
	}
	requests := p.Requests()
	if len(requests) != 3 || requests[1].Path != "/b" || string(requests[1].Body) != `{"q":2}` || requests[1].N != 1 {
		t.Errorf("recorded %+v", requests)
	}
}

func TestProvider_Ends(t *testing.T) {
	reset := testkit.Reply{Body: []byte("half"), End: "reset"}
	p := testkit.NewProvider(t, reset, testkit.Reply{Body: []byte("half"), End: "hang"})
	if _, got, err := post(t, p.URL, ""); !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != "half" {
		t.Errorf("reset: %q, %v", got, err)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := http.Post(p.URL, "", nil)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		done <- err
	}()
	for len(p.Requests()) < 2 {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-done:
		t.Errorf("a hanging reply ended: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	p.Close()
	if err := <-done; err == nil {
		t.Error("closing the provider did not end the reply")
	}
}

func TestProvider_Func(t *testing.T) {
	p := testkit.NewProviderFunc(t, func(r testkit.Request) testkit.Reply {
		return testkit.Reply{Body: append([]byte("you said "), r.Body...)}
	})
	if _, got, _ := post(t, p.URL, "x"); string(got) != "you said x" {
		t.Errorf("got %q", got)
	}
}

func TestLoadScript_AllCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(cases, "scripts", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		script, err := testkit.LoadScript(file)
		if err != nil || len(script.Steps) == 0 || len(script.Steps[0].Body) == 0 {
			t.Errorf("%s: %v, %+v", file, err, script)
		}
	}
	html := testkit.CaseScript(t, cases, "html-502.json")
	if html.Steps[0].Status != 502 || html.Steps[1].Headers["Content-Type"] != "text/html" {
		t.Errorf("got %+v", html)
	}
	loop := testkit.CaseScript(t, cases, "loop-forever.json")
	if !bytes.Equal(loop.Answer(testkit.Request{N: 9}).Body, loop.Steps[0].Body) {
		t.Error("the last step is not repeated")
	}
}

func TestLoadScript_Errors(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"broken.json": `{"steps":`, "missing.json": `{"steps":[{"body":"nowhere.sse"}]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := testkit.LoadScript(path); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLoadReply_EventStream(t *testing.T) {
	reply := testkit.Case(t, cases, "throttled-midstream.bedrock.json")
	if reply.Headers["Content-Type"] != "application/vnd.amazon.eventstream" ||
		!bytes.Contains(reply.Body, []byte("throttlingException")) || !bytes.Contains(reply.Body, []byte(":exception-type")) {
		t.Errorf("got %q", reply.Body)
	}
}
