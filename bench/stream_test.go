package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/cli"
	"github.com/tendril-agent/tendril/internal/model"
	"github.com/tendril-agent/tendril/internal/testkit"
)

const deltas = 5000

// manyDeltas is a reply of 5,000 pieces of text, as OpenAI sends them.
func manyDeltas() testkit.Reply {
	var body bytes.Buffer
	for i := range deltas {
		fmt.Fprintf(&body, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word%d "},"finish_reason":null}]}`+"\n\n", i)
	}
	body.WriteString(`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	return testkit.Reply{Body: body.Bytes()}
}

// lineTimes keeps when the first and the last delta were written.
type lineTimes struct {
	first, last time.Time
	n           int
}

func (l *lineTimes) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"type":"text_delta"`)) {
		if l.last = time.Now(); l.n == 0 {
			l.first = l.last
		}
		l.n++
	}
	return len(p), nil
}

// BenchmarkDeltas is 5,000 pieces of text from a socket through the loop to the
// writer of --json: from the first to the last line, and what a piece allocates.
func BenchmarkDeltas(b *testing.B) {
	reply := manyDeltas()
	p := testkit.NewProviderFunc(b, func(testkit.Request) testkit.Reply { return reply })
	home := settings(b, p.URL)
	deno := testkit.Deno(b)
	env := map[string]string{"TENDRIL_HOME": home, "OPENAI_API_KEY": "sk-test", "DENO_PATH": deno, "HOME": home}
	var total time.Duration
	var mallocs, bytesBefore runtime.MemStats
	var allocs, size uint64
	for b.Loop() {
		var lines lineTimes
		var errs strings.Builder
		std := cli.Std{In: strings.NewReader(""), Out: &lines, Err: &errs, Getenv: func(name string) string { return env[name] }}
		runtime.ReadMemStats(&bytesBefore)
		if code := cli.Main([]string{"run", "--json", "go"}, std); code != 0 || lines.n != deltas {
			b.Fatalf("exit code %d, %d lines\n%s", code, lines.n, errs.String())
		}
		runtime.ReadMemStats(&mallocs)
		total += lines.last.Sub(lines.first)
		allocs += mallocs.Mallocs - bytesBefore.Mallocs
		size += mallocs.TotalAlloc - bytesBefore.TotalAlloc
	}
	n := float64(b.N)
	b.ReportMetric(float64(total.Microseconds())/1000/n, "ms-first-to-last/op")
	b.ReportMetric(float64(allocs)/n/deltas, "allocs/delta")
	b.ReportMetric(float64(size)/n/deltas, "B/delta")
}

// longSession has so many messages of 400 bytes, with a call in every fourth.
func longSession(messages int) *agent.MemoryLog {
	log := &agent.MemoryLog{}
	text := strings.Repeat("some words ", 36)
	seq := int64(0)
	add := func(e agent.Event) {
		seq++
		e.Seq, e.Session, e.Turn, e.Time = seq, "s", int(seq/4)+1, time.Unix(seq, 0)
		_ = log.Append(context.Background(), e) // memory
	}
	for i := 0; i < messages; i += 4 {
		call := &agent.Call{ID: fmt.Sprint("c", i), Name: agent.ExecuteTool, Input: []byte(`{"name":"count_words"}`)}
		add(agent.Event{Type: agent.TurnStarted, Model: "openai/scripted", Message: &agent.Message{Role: agent.RoleUser, Blocks: []agent.Block{agent.Text(fmt.Sprint(i, text))}}})
		add(agent.Event{Type: agent.AssistantMessage, Message: &agent.Message{Role: agent.RoleAssistant, Model: "openai/scripted", Blocks: []agent.Block{agent.Text(fmt.Sprint(i, text)), {Type: agent.BlockCall, Call: call}}}})
		add(agent.Event{Type: agent.ToolCallFinished, CallID: call.ID, Tool: call.Name, Result: &agent.Result{Status: agent.Completed, Text: fmt.Sprint(i, text)}})
		add(agent.Event{Type: agent.AssistantMessage, Message: &agent.Message{Role: agent.RoleAssistant, Model: "openai/scripted", Blocks: []agent.Block{agent.Text(fmt.Sprint(i, text))}}})
		add(agent.Event{Type: agent.TurnFinished, Stop: agent.StopEndTurn})
	}
	return log
}

// BenchmarkLongHistory is a turn on top of 10,000 messages: its time, and the
// memory that it allocates and that stays while the session is open, both beside
// the messages themselves.
func BenchmarkLongHistory(b *testing.B) {
	const messages = 10_000
	reply := testkit.OpenAIText("done").Body
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // the scripted provider keeps requests
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(reply)
	}))
	defer p.Close()
	m := model.NewOpenAI(model.OpenAIOptions{ModelID: "scripted", APIKey: "sk-test", BaseURL: p.URL + "/v1"})
	ag, err := agent.New(agent.Options{Model: m, System: "be brief"})
	if err != nil {
		b.Fatal(err)
	}
	before := heapMB()
	log := longSession(messages)
	held := heapMB() - before
	b.ReportAllocs()
	for b.Loop() {
		for e := range ag.Run(b.Context(), agent.Session{ID: "s", Log: log}, []agent.Block{agent.Text("go")}) {
			if e.Type == agent.TurnFinished && e.Stop != agent.StopEndTurn {
				b.Fatalf("%+v", e)
			}
		}
	}
	b.ReportMetric(held, "MiB-session")
	b.ReportMetric(heapMB()-before-held, "MiB-more-after")
	runtime.KeepAlive(log)
}

func heapMB() float64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / (1 << 20)
}
