package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// recorded is a line of a recorded conversation of the original agent.
type recorded struct {
	Dir string          `json:"dir"` // in, out, model, note, exit
	Msg json.RawMessage `json:"msg"`
	Raw string          `json:"raw"`
}

// wireUpdate is an update of either agent, as far as the test looks into it.
type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Update struct {
			Kind  string          `json:"sessionUpdate"`
			ID    string          `json:"toolCallId"`
			Title string          `json:"title"`
			Text  string          `json:"text"`
			Input json.RawMessage `json:"input"`
		} `json:"update"`
	} `json:"params"`
}

func readRecording(t *testing.T, path string) []recorded {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []recorded
	for line := range bytes.Lines(data) {
		var r recorded
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// TestSidecar_AsRecorded plays each recorded conversation of the original against
// ours, with a model that says the same. What differs stands in
// testdata/wire/*.diff, and docs/sidecar.md says why.
func TestSidecar_AsRecorded(t *testing.T) {
	paths, err := filepath.Glob("testdata/wire/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		if name[:2] == "30" || name[:2] == "31" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			recording := readRecording(t, path)
			model := scriptOf(t, name, recording)
			p := testkit.NewProviderFunc(t, model.answer)
			s := newSandboxed(t, p)
			if name[:2] == "24" {
				p.Close()
			}
			if name[:2] == "11" || name[:2] == "26" {
				s.configure("sandbox.timeoutMs", "2000")
			}
			ours := s.replay(name, recording, p)
			var theirs []string
			for _, r := range recording {
				if r.Dir == "out" && r.Raw == "" && r.Msg != nil {
					theirs = append(theirs, string(r.Msg))
				}
			}
			sameFields(t, theirs, ours)
			if endsEarly[name] {
				ours = ours[:len(theirs)]
			}
			got := diff.Diff("original", normalised(t, theirs), "ours", normalised(t, ours))
			file := filepath.Join("testdata", "wire", name+".diff")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("what differs has changed; to accept: go test ./internal/cli -run TestSidecar_AsRecorded -update\n%s", diff.Diff("accepted", want, "now", got))
			}
			for _, fault := range testkit.Lint(p.Requests()) {
				t.Error(fault)
			}
			s.checkNothingIsLeft()
		})
	}
}

func (s *sandboxed) configure(key, value string) {
	s.t.Helper()
	cmd := exec.Command("tendril", "config", "set", key, value)
	cmd.Env = s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// wireScript is what the model of a recording says: for each [[name]] in a
// prompt its replies, in order.
type wireScript map[string][]testkit.Reply

var scriptName = regexp.MustCompile(`\[\[(\w+)\]\]`)

func (w wireScript) answer(r testkit.Request) testkit.Reply {
	var body struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return testkit.Reply{Status: 400}
	}
	step, name := 0, ""
	for _, m := range body.Messages {
		switch m.Role {
		case "user":
			step = 0
			if found := scriptName.FindAllStringSubmatch(fmt.Sprint(m.Content), -1); found != nil {
				name = found[len(found)-1][1] // prompts without an answer between them are one message
			}
		case "assistant":
			step++
		}
	}
	if replies := w[name]; step < len(replies) {
		return replies[step]
	}
	return testkit.Reply{Status: 500}
}

// scriptOf reads the model's replies out of what the original sent on.
func scriptOf(t *testing.T, name string, recording []recorded) wireScript {
	t.Helper()
	w := wireScript{}
	var script string
	var step int
	var turn testkit.Turn
	close := func() {
		if script != "" {
			for len(w[script]) <= step {
				w[script] = append(w[script], testkit.Reply{})
			}
			turn.Usage = &testkit.Usage{Input: 100, Output: 10}
			w[script][step] = testkit.OpenAI(turn)
		}
		script, turn = "", testkit.Turn{}
	}
	for _, r := range recording {
		var m wireMessage
		_ = json.Unmarshal(r.Msg, &m) // there may be none
		switch u := m.Params.Update; {
		case r.Dir == "model":
			close()
			if _, err := fmt.Sscanf(r.Raw, "request script=%s step=%d", &script, &step); err != nil {
				t.Fatalf("%s: %v", r.Raw, err)
			}
		case u.Kind == "tool_call":
			turn.Calls = append(turn.Calls, testkit.Call{ID: u.ID, Name: u.Title, Args: string(u.Input)})
		case u.Kind == "agent_message_chunk":
			turn.Text += u.Text
		case u.Kind == "prompt_complete":
			close()
		}
	}
	close()
	w.correct(name)
	return w
}

// correct puts in what the recording cannot tell, because the original did not
// pass it on.
func (w wireScript) correct(name string) {
	list := func(id string) testkit.Call { return testkit.Call{ID: id, Name: "listCapabilities", Args: "{}"} }
	used := &testkit.Usage{Input: 100, Output: 10}
	failure := func(status int) testkit.Reply {
		return testkit.JSON(status, map[string]any{"error": map[string]string{"message": "from the fake"}})
	}
	switch name[:2] {
	case "05":
		slow := w["slow"][0]
		slow.Delay = 2 * time.Second
		w["slow"][0] = slow
	case "20":
		stream := hanging("w")
		stream.Body = bytes.ReplaceAll(stream.Body, []byte(`"content":"w"`), []byte(`"content":"word word word word "`)) // in one piece
		w["stream"] = []testkit.Reply{stream}
		w["hang"] = []testkit.Reply{{End: "hang", Headers: map[string]string{"Content-Type": "text/event-stream"}}}
	case "21":
		w["slow"] = []testkit.Reply{{End: "hang", Headers: map[string]string{"Content-Type": "text/event-stream"}}}
	case "23":
		for script, status := range map[string]int{"e400": 400, "e401": 401, "e404": 404, "e429": 429, "e500": 500} {
			w[script] = []testkit.Reply{failure(status)}
		}
		cut := hanging("This answer ")
		cut.End = "reset"
		w["drop"] = []testkit.Reply{cut}
	case "25":
		w["multi"][1] = testkit.OpenAI(testkit.Turn{Usage: used, Calls: []testkit.Call{
			list("call_multi_1_0"), list("call_multi_1_1"), {ID: "call_multi_1_2", Name: "execute", Args: `{"name":"word_count","args":"{\"text\":\"a b c\"}"}`}}})
		w["pre"][0] = testkit.OpenAI(testkit.Turn{Usage: used, Text: "Let me look.", Calls: []testkit.Call{list("call_pre_0_0")}})
	case "26":
		w["multi"][1] = testkit.OpenAI(testkit.Turn{Usage: used, Calls: []testkit.Call{
			{ID: "call_multi_1_0", Name: "execute", Args: `{"name":"sleeper","args":"{\"ms\":60000}"}`}, list("call_multi_1_1"), list("call_multi_1_2")}})
	case "27":
		for _, script := range []string{"b2"} {
			w[script] = []testkit.Reply{
				testkit.OpenAI(testkit.Turn{Usage: used, Calls: []testkit.Call{{ID: "call_" + script + "_0_0", Name: "execute", Args: `{"name": "word_co`}}}),
				testkit.OpenAI(testkit.Turn{Usage: used, Text: script + "."}),
			}
		}
	case "36":
		w["j1"] = []testkit.Reply{testkit.OpenAI(testkit.Turn{Usage: used, Text: `{"answer":42}`})}
		w["j2"] = []testkit.Reply{testkit.OpenAI(testkit.Turn{Usage: used, Text: `{"answer":42,"list":[1,2,3]}`})}
		forged := `{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"prompt_complete","stop_reason":"forged_by_model_text"}}}` + "\n"
		w["j3"] = []testkit.Reply{testkit.OpenAI(testkit.Turn{Usage: used, Text: forged})}
	case "29":
		for i, in := range []int64{1000, 2000, 3000} {
			turn := testkit.Turn{Usage: &testkit.Usage{Input: in, Output: int64(10 * (i + 5))}, Text: "Done."}
			if i < 2 {
				turn.Text, turn.Calls = "", []testkit.Call{list(fmt.Sprintf("call_usage_%d_0", i))}
			}
			w["usage"] = append(w["usage"][:i], testkit.OpenAI(turn))
		}
	case "34":
		w["len"] = []testkit.Reply{testkit.OpenAI(testkit.Turn{Text: "This is cut", Finish: "length", Usage: used})}
		w["lentool"] = []testkit.Reply{testkit.OpenAI(testkit.Turn{Finish: "length", Usage: used, Calls: []testkit.Call{{ID: "call_lentool_0_0", Name: "listCapabilities", Args: `{"query":"a`}}})}
	}
}

// peer is a running agent and what it has sent.
type peer struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu    sync.Mutex
	lines []string
	done  chan struct{} // stdout has ended
}

func (s *sandboxed) startPeer(name string, args ...string) *peer {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = s.env
	stdin, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p := &peer{t: s.t, cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *peer) sent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// end closes stdin and waits for the agent to go, which it does within two
// seconds; the test allows for a slow machine.
func (p *peer) end() {
	p.t.Helper()
	p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		p.t.Error("still there 20 s after the end of stdin")
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
}

// counts are what has to have come before the recording goes on.
func counts(lines []string) map[string]int {
	n := map[string]int{}
	for _, line := range lines {
		var m wireMessage
		_ = json.Unmarshal([]byte(line), &m) // checked elsewhere
		switch kind := m.Params.Update.Kind; {
		case strings.Contains(line, "forged_by_model_text"): // what the original let the model write
		case kind == "prompt_complete" || kind == "tool_call" || kind == "agent_message_chunk":
			n[kind] = 1
			if kind != "agent_message_chunk" {
				n[kind+"s"]++
			}
		case m.Method == "":
			n["answer "+string(m.ID)] = 1
		}
	}
	return n
}

// busy are the recordings that send a prompt while another one is at work.
var busy = map[string]bool{"05-concurrent-prompt": true}

// endsEarly are the recordings in which stdin ends in the middle of a turn: how
// much of the turn is told after that depends on the machine.
var endsEarly = map[string]bool{"28-stdin-close-mid-turn": true, "35-prompt-pipelined": true}

// idle reports whether each prompt that was taken has come to its end.
func (p *peer) idle() bool {
	taken, ended := 0, 0
	for _, line := range p.sent() {
		if strings.Contains(line, `"result":{}`) {
			taken++
		}
		if strings.Contains(line, `"sessionUpdate":"prompt_complete"`) {
			ended++
		}
	}
	return ended >= taken
}

// replay sends what the recorded client sent, each line when what had come before
// it in the recording has come.
func (s *sandboxed) replay(name string, recording []recorded, provider *testkit.Provider) []string {
	var all, theirs []string
	peer := s.startPeer("tendril-agent", s.ws)
	models := 0
	for i, r := range recording {
		switch {
		case r.Dir == "out" && r.Raw == "" && r.Msg != nil:
			theirs = append(theirs, string(r.Msg))
		case r.Dir == "model":
			models++
		case r.Dir == "exit" && i < len(recording)-2 && recording[i+1].Dir == "in":
			peer.await(counts(theirs), func() bool { return peer.idle() && len(provider.Requests()) >= models })
			peer.end()
			all = append(all, peer.sent()...)
			theirs = nil
			peer = s.startPeer("tendril-agent", s.ws)
		case r.Dir == "in":
			peer.await(counts(theirs), func() bool { return len(provider.Requests()) >= models })
			line := r.Raw
			if r.Msg != nil {
				line = string(r.Msg)
			}
			if strings.Contains(line, `"method": "prompt"`) && !busy[name] {
				peer.await(nil, peer.idle)
			}
			if _, err := io.WriteString(peer.stdin, strings.ReplaceAll(line, "{root}/ws", s.ws)+"\n"); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	peer.await(counts(theirs), func() bool { return len(provider.Requests()) >= models })
	peer.end()
	return append(all, peer.sent()...)
}

func (p *peer) await(want map[string]int, ready func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		got := counts(p.sent())
		missing := ""
		for what, n := range want {
			if got[what] < n {
				missing = what
			}
		}
		if missing == "" && ready() {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("did not come: %s; sent:\n%s", missing, strings.Join(p.sent(), "\n"))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// sameFields checks that each kind of update has the original's fields, in its
// order. message_usage, which the original declares and never sends, is left out.
func sameFields(t *testing.T, theirs, ours []string) {
	t.Helper()
	want := map[string]string{}
	for _, line := range theirs {
		kind, fields := fieldsOf(line)
		want[kind] = fields
	}
	for _, line := range ours {
		if kind, fields := fieldsOf(line); kind != "" && want[kind] != "" && fields != want[kind] {
			t.Errorf("%s has the fields %s, want %s", kind, fields, want[kind])
		}
	}
}

// fieldsOf are the keys of an update in their order.
func fieldsOf(line string) (kind, fields string) {
	var m struct {
		Params struct {
			Update json.RawMessage `json:"update"`
		} `json:"params"`
	}
	if json.Unmarshal([]byte(line), &m) != nil || m.Params.Update == nil {
		return "", ""
	}
	d := json.NewDecoder(bytes.NewReader(m.Params.Update))
	_, _ = d.Token() // the {
	var keys []string
	for d.More() {
		key, _ := d.Token()
		var value json.RawMessage
		_ = d.Decode(&value) // it was valid JSON a moment ago
		if key == "sessionUpdate" {
			kind = string(value)
		}
		keys = append(keys, fmt.Sprint(key))
	}
	return kind, strings.Join(keys, " ")
}

// normalised writes messages one a line, without what varies. Pieces of text that
// follow each other are one.
func normalised(t *testing.T, lines []string) []byte {
	t.Helper()
	var out bytes.Buffer
	text := ""
	flush := func() {
		if text != "" {
			fmt.Fprintf(&out, "agent_message_chunk %q\n", text)
		}
		text = ""
	}
	for _, line := range lines {
		var m map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&m); err != nil {
			t.Fatalf("not a message: %s", line)
		}
		if u, ok := updateOf(m); ok {
			if u["sessionUpdate"] == "agent_message_chunk" {
				content, _ := json.Marshal(map[string]any{"type": "text", "text": u["text"]})
				if got, _ := json.Marshal(u["content"]); !bytes.Equal(got, content) || len(u) != 3 {
					t.Errorf("a chunk is not of the original's shape: %s", line)
				}
				text += u["text"].(string)
				continue
			}
			plainUpdate(t, u)
		}
		flush()
		plainAnswer(m)
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(raw, '\n'))
	}
	flush()
	return out.Bytes()
}

func updateOf(m map[string]any) (map[string]any, bool) {
	params, _ := m["params"].(map[string]any)
	u, ok := params["update"].(map[string]any)
	return u, ok
}

// plainUpdate replaces what varies in an update.
func plainUpdate(t *testing.T, u map[string]any) {
	for _, key := range []string{"acp_session_id", "message_id", "duration_ms"} {
		if _, ok := u[key]; ok {
			u[key] = "…"
		}
	}
	if u["sessionUpdate"] == "error" {
		u["message"] = "…"
	}
	if output, ok := u["rawOutput"].(string); ok {
		var blocks []struct{ Text *string }
		if json.Unmarshal([]byte(output), &blocks) != nil || len(blocks) != 1 || blocks[0].Text == nil {
			t.Errorf("rawOutput is not a list with one text: %s", output)
		}
		u["rawOutput"] = "[…]"
	}
}

// plainAnswer replaces what varies in an answer.
func plainAnswer(m map[string]any) {
	if result, ok := m["result"].(map[string]any); ok {
		if info, ok := result["agentInfo"].(map[string]any); ok {
			info["version"] = "…"
		}
		if _, ok := result["sessionId"]; ok {
			result["sessionId"] = "…"
		}
	}
	if failure, ok := m["error"].(map[string]any); ok && failure["code"] != json.Number("-32601") && failure["code"] != json.Number("-32000") {
		failure["message"] = "…"
	}
}
