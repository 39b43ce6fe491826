package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// BenchmarkHost is from the start of `tendril --no-open` to its link, and to the
// agent being ready; what host and agent hold then; and from a prompt to the
// first text of an instant model in the stream of events.
func BenchmarkHost(b *testing.B) {
	bin := build(b)
	provider := testkit.NewProviderFunc(b, func(testkit.Request) testkit.Reply { return testkit.OpenAIText("at once") })
	home := settings(b, provider.URL)
	var link, ready, text time.Duration
	var host, agent float64
	for b.Loop() {
		cmd := exec.Command(bin, "--no-open")
		cmd.Env = append(os.Environ(), "TENDRIL_HOME="+home, "OPENAI_API_KEY=sk-test", "DENO_PATH="+testkit.Deno(b))
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		link += time.Since(start)
		app := openApp(b, strings.TrimSpace(line))
		app.until(func(kind, data string) bool { return strings.Contains(data, `"status":"ready"`) })
		ready += time.Since(start)
		pid := strconv.Itoa(cmd.Process.Pid)
		host += residentOf(b, pid)
		if child, err := exec.Command("pgrep", "-P", pid).Output(); err == nil {
			agent += residentOf(b, strings.TrimSpace(string(child)))
		}
		id := app.post("/api/sessions", struct{}{})["id"].(string)
		asked := time.Now()
		app.post("/api/sessions/"+id+"/prompt", map[string]string{"text": "hello"})
		app.until(func(kind, data string) bool { return strings.Contains(data, `"type":"agent"`) })
		text += time.Since(asked)
		app.until(func(kind, data string) bool { return kind == "session" && strings.Contains(data, `"running":false`) })
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	n := float64(b.N)
	b.ReportMetric(float64(link.Microseconds())/1000/n, "ms-to-link/op")
	b.ReportMetric(float64(ready.Microseconds())/1000/n, "ms-to-agent/op")
	b.ReportMetric(float64(text.Microseconds())/1000/n, "ms-prompt-to-text/op")
	b.ReportMetric(host/n, "MiB-host")
	b.ReportMetric(agent/n, "MiB-agent")
}

// app is a client of the host.
type app struct {
	b       *testing.B
	address string
	client  *http.Client
	token   string
	events  *bufio.Reader
}

func openApp(b *testing.B, link string) *app {
	b.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	a := &app{b: b, client: &http.Client{Jar: jar}}
	a.address, _, _ = strings.Cut(link, "/open?")
	_, code, _ := strings.Cut(link, "code=")
	a.token, _ = a.post("/api/login", map[string]string{"code": code})["token"].(string)
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, a.address+"/api/events", nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Tendril-Token", a.token)
	resp, err := a.client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { resp.Body.Close() })
	a.events = bufio.NewReader(resp.Body)
	return a
}

func (a *app) post(path string, body any) map[string]any {
	a.b.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		a.b.Fatal(err)
	}
	req, err := http.NewRequestWithContext(a.b.Context(), http.MethodPost, a.address+path, bytes.NewReader(data))
	if err != nil {
		a.b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Tendril-Token", a.token)
	resp, err := a.client.Do(req)
	if err != nil || resp.StatusCode >= 300 {
		a.b.Fatal(resp, err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&answer) // not all have a body
	return answer
}

func (a *app) until(found func(kind, data string) bool) {
	a.b.Helper()
	kind := ""
	for {
		line, err := a.events.ReadString('\n')
		if err != nil {
			a.b.Fatal(err)
		}
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case key == "event":
			kind = value
		case key == "data" && found(kind, value):
			return
		}
	}
}
