//go:build linux

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/host"
)

// hostClient drives a `tendril --no-open`, a process of its own, as the app does.
type hostClient struct {
	t       *testing.T
	s       *sandboxed
	cmd     *exec.Cmd
	link    string
	address string
	http    *http.Client
	token   string

	mu       sync.Mutex
	state    host.State
	sessions map[string]host.SessionState
	items    map[string][]host.Item // as events tell
	agents   []string               // the states of the agent
	resets   int
	stop     context.CancelFunc
}

// host starts a host and signs in.
func (s *sandboxed) host(args ...string) *hostClient {
	s.t.Helper()
	c := s.startHost(args...)
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c.http = &http.Client{Jar: jar}
	c.signIn()
	c.follow()
	return c
}

// signIn redeems the link, as the page at it does.
func (c *hostClient) signIn() {
	c.t.Helper()
	_, code, _ := strings.Cut(c.link, "code=")
	var in host.SignedIn
	c.must("POST", "/api/login", host.SignIn{Code: code}, &in)
	c.token = in.Token
}

func (s *sandboxed) startHost(args ...string) *hostClient {
	s.t.Helper()
	c := &hostClient{t: s.t, s: s, sessions: map[string]host.SessionState{}, items: map[string][]host.Item{}}
	c.cmd = exec.Command("tendril", append([]string{"--no-open"}, args...)...)
	c.cmd.Env = s.env
	s.errs.Reset()
	c.cmd.Stderr = &s.errs
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.t.Fatalf("no link: %v\n%s", err, s.errs.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	c.link = strings.TrimSpace(line)
	c.address, _, _ = strings.Cut(line, "/open?")
	return c
}

// call sends a request and decodes the answer into v. It returns the status.
func (c *hostClient) call(method, path string, body, v any) (status int, text string) {
	c.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.address+path, bytes.NewReader(data))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Tendril-Token", c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, c.s.errs.String())
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if v != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(answer, v); err != nil {
			c.t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
	return resp.StatusCode, string(answer)
}

func (c *hostClient) must(method, path string, body, v any) {
	c.t.Helper()
	if status, text := c.call(method, path, body, v); status >= 300 {
		c.t.Fatalf("%s %s: %d %s\n%s", method, path, status, text, c.s.errs.String())
	}
}

// follow keeps what the host tells. It returns when that begins.
func (c *hostClient) follow() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	c.stop = cancel
	req, err := http.NewRequestWithContext(ctx, "GET", c.address+"/api/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("X-Tendril-Token", c.token)
	resp, err := c.http.Do(req)
	if err != nil || resp.StatusCode != 200 {
		c.t.Fatalf("%v %v", resp, err)
	}
	begun := make(chan struct{})
	go func() {
		defer resp.Body.Close()
		lines := bufio.NewReaderSize(resp.Body, 1<<20)
		kind := ""
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if k, ok := strings.CutPrefix(line, "event: "); ok {
				kind = strings.TrimSpace(k)
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				c.take(kind, []byte(data))
				if kind == "snapshot" {
					close(begun)
				}
			}
		}
	}()
	<-begun
}

func (c *hostClient) take(kind string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var e struct {
		Session string    `json:"session"`
		Index   int       `json:"index"`
		Item    host.Item `json:"item"`
		Text    string    `json:"text"`
	}
	var err error
	switch kind {
	case "snapshot":
		err = json.Unmarshal(data, &c.state)
	case "agent":
		var a host.Agent
		err = json.Unmarshal(data, &a)
		c.agents = append(c.agents, a.Status)
		c.state.Agent = a
	case "session":
		var s host.SessionState
		err = json.Unmarshal(data, &s)
		c.sessions[s.ID] = s
	case "reset":
		c.resets++
	case "item", "append":
		if err = json.Unmarshal(data, &e); err != nil {
			break
		}
		items := c.items[e.Session]
		switch {
		case kind == "append":
			items[e.Index].Text += e.Text
		case e.Index == len(items):
			items = append(items, e.Item)
		default:
			items[e.Index] = e.Item
		}
		c.items[e.Session] = items
	}
	if err != nil {
		c.t.Errorf("%s %s: %v", kind, data, err)
	}
}

// until waits until what the host told satisfies ok.
func (c *hostClient) until(what string, ok func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		c.mu.Lock()
		done := ok()
		c.mu.Unlock()
		if done {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	items, _ := json.MarshalIndent(c.items, "", " ")
	c.t.Fatalf("never: %s\nagent %+v, sessions %+v\n%s\n%s", what, c.state.Agent, c.sessions, items, c.s.errs.String())
}

func (c *hostClient) ready() {
	c.t.Helper()
	c.until("the agent is ready", func() bool { return c.state.Agent.Status == "ready" })
}

func (c *hostClient) newSession() string {
	c.t.Helper()
	var created struct {
		ID string `json:"id"`
	}
	c.must("POST", "/api/sessions", map[string]any{}, &created)
	return created.ID
}

func (c *hostClient) prompt(id, text string) {
	c.t.Helper()
	c.must("POST", "/api/sessions/"+id+"/prompt", map[string]string{"text": text}, nil)
}

// turn waits for the end of the last turn of a session.
func (c *hostClient) turn(id string) host.Turn {
	c.t.Helper()
	var end host.Turn
	c.until("the end of a turn", func() bool {
		items := c.items[id]
		if len(items) == 0 || items[len(items)-1].Turn == nil || c.sessions[id].Running {
			return false
		}
		end = *items[len(items)-1].Turn
		return true
	})
	return end
}

// says waits for a text in a session.
func (c *hostClient) says(id, text string) {
	c.t.Helper()
	c.until(text, func() bool {
		return slices.ContainsFunc(c.items[id], func(i host.Item) bool { return strings.Contains(i.Text, text) })
	})
}

// checkSame fails when what events told is not what is read now.
func (c *hostClient) checkSame(id string) {
	c.t.Helper()
	var got host.Conversation
	c.must("GET", "/api/sessions/"+id, nil, &got)
	c.mu.Lock()
	defer c.mu.Unlock()
	read, _ := json.MarshalIndent(got.Items, "", " ")
	told, _ := json.MarshalIndent(c.items[id], "", " ")
	if !bytes.Equal(read, told) {
		c.t.Errorf("events told\n%s\nand read was\n%s", told, read)
	}
}

// agentPID is the process of the agent.
func (c *hostClient) agentPID() int {
	c.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", c.cmd.Process.Pid))
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.cmd.Process.Pid))
	for _, task := range tasks { // each thread has its own
		if more, err := os.ReadFile(task); err == nil {
			data = append(append(data, ' '), more...)
		}
	}
	for _, field := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil {
			return pid
		}
	}
	c.t.Fatalf("there is no agent: %v", err)
	return 0
}

func (c *hostClient) killAgent() {
	c.t.Helper()
	if err := syscall.Kill(c.agentPID(), syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
}

// done ends the host, and checks that it leaves nothing.
func (c *hostClient) done() {
	c.t.Helper()
	if c.stop != nil {
		c.stop()
	}
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		c.t.Fatal(err)
	}
	if code := c.s.wait(c.cmd, 20*time.Second); code != 0 {
		c.t.Errorf("exit code %d\n%s", code, c.s.errs.String())
	}
	c.s.checkNothingIsLeft()
}

// asked waits for a question in a session.
func (c *hostClient) asked(id string) host.Permission {
	c.t.Helper()
	var q host.Permission
	c.until("a question", func() bool {
		if len(c.sessions[id].Permissions) == 0 {
			return false
		}
		q = c.sessions[id].Permissions[0]
		return c.sessions[id].Waiting == "you"
	})
	return q
}

func (c *hostClient) reply(id string, q host.Permission, option string) (int, string) {
	c.t.Helper()
	return c.call("POST", "/api/sessions/"+id+"/permissions/"+q.ID, map[string]string{"option": option}, nil)
}

// wasDenied checks that the last call of a session failed for a host.
func (c *hostClient) wasDenied(id, name string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	at := len(c.items[id]) - 1
	for ; c.items[id][at].Tool == nil; at-- {
	}
	if call := c.items[id][at].Tool; call.Status != "failed" || !slices.Equal(call.Denied, []string{name}) {
		c.t.Errorf("%+v", call)
	}
}
