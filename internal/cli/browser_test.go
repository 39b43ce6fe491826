//go:build linux

package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
	"github.com/tendril-agent/tendril/web"
)

// browserReply is chosen by the last word that the person says.
func browserReply(r testkit.Request) testkit.Reply {
	asked, last := lastAsked(r)
	kind := asked[strings.LastIndex(asked, " ")+1:]
	switch {
	case last == "tool":
		return testkit.OpenAIText("done " + asked)
	case kind == "hang":
		return hanging("half of " + asked)
	case kind == "ask":
		return networked("ask-"+asked, "asker", "*")
	case kind == "wide":
		hosts := []string{"*"}
		for i := range 40 {
			hosts = append(hosts, fmt.Sprintf("host-%d.example.com", i))
		}
		return networkedCode("wide-"+asked, "wide"+asked[:1], "// "+strings.Repeat("a long line of code ", 200)+"\nexport default () => 1;", hosts...)
	case kind == "evil":
		return testkit.OpenAIText("<script>window.hacked=1</script><img src=x onerror=alert(1)> ![x](https://attacker.example/i.png) " +
			"[a](javascript:alert(1)) [b](data:text/html,x) <iframe src=https://attacker.example></iframe> <svg onload=alert(1)> the end of it")
	case kind == "drip":
		var words strings.Builder
		for i := range 100 {
			fmt.Fprintf(&words, "word-%d ", i)
		}
		reply := testkit.OpenAIText(words.String())
		reply.Split, reply.Gap = "lines", 10*time.Millisecond
		return reply
	}
	return testkit.OpenAIText("answer to " + asked)
}

// TestBrowser plays web/e2e in a real Chromium, each with a host of its own.
func TestBrowser(t *testing.T) {
	if _, built := web.FS(); !built {
		t.Skip("the pages are not built; make test builds them where npm is")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	dir, err := filepath.Abs("../../web")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(dir, "e2e", "*.mjs"))
	if err != nil || len(scripts) < 2 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".mjs")
		if name == "app" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandboxed(t, testkit.NewProviderFunc(t, browserReply))
			if name == "first-start" { // as on a new machine
				if err := os.Remove(filepath.Join(s.home, "config.json")); err != nil {
					t.Fatal(err)
				}
				user := filepath.Join(filepath.Dir(s.home), "user")
				s.env = append(s.env, "HOME="+user, "OPENAI_API_KEY=", "OLLAMA_HOST=http://127.0.0.1:1")
				notes := filepath.Join(user, "tendril-workspace", "notes.md")
				if err := errors.Join(os.MkdirAll(filepath.Dir(notes), 0o755), os.WriteFile(notes, []byte("one two three four five\n"), 0o644)); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Mkdir(s.ws, 0o755); err != nil {
				t.Fatal(err)
			}
			h := s.startHost()
			cmd := exec.Command(node, script)
			cmd.Dir = dir
			environment, err := json.Marshal(s.environment())
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(os.Environ(), "LINK="+h.link, fmt.Sprintf("HOST_PID=%d", h.cmd.Process.Pid), "HOST_ENV="+string(environment), "CHROMIUM="+chromium)
			if shots := os.Getenv("SHOTS"); shots != "" {
				cmd.Env = append(cmd.Env, "SHOTS="+filepath.Join(shots, name))
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\nhost: %s", err, out, s.errs.String())
			}
			if name == "restart" { // it has killed this host, and ended those after it
				_ = h.cmd.Wait()
				s.checkNothingIsLeft()
				return
			}
			h.done()
		})
	}
}

// environment is that of the program.
func (s *sandboxed) environment() map[string]string {
	values := map[string]string{}
	for _, v := range s.env {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value
	}
	return values
}
