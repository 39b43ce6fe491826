package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/egress"
	"github.com/tendril-agent/tendril/internal/terminal"
)

// renderer shows the events of a turn to a person: the answer on out, what the
// agent does on status. Everything from model and tools is cleaned first.
type renderer struct {
	out    io.Writer
	status *statusLine
	style  style
	// together is set when out and status are one terminal: the answer then
	// stands apart from what led to it.
	together bool

	midLine bool // out does not end with a newline
	spoke   bool // out got text
	warned  bool // so was the missing layer
	apart   bool // the next text begins a new paragraph
	calls   map[string]agent.Call
	steps   []string // what the gate warned of in the current call
	printed int      // lines of live output of the current call
	err     error    // of the first write that failed
}

func newRenderer(out io.Writer, status *statusLine, s style) *renderer {
	return &renderer{out: out, status: status, style: s, calls: make(map[string]agent.Call)}
}

// event shows one event. Its error is that of writing the answer.
func (r *renderer) event(e agent.Event) error {
	switch e.Type {
	case agent.TurnStarted:
		if e.Note != "" {
			r.line(r.style.warn("!"), "%s", e.Note)
		}
		r.status.wait("waiting for " + e.Model)
	case agent.TextDelta:
		r.text(e.Text)
	case agent.ReasoningDelta:
		r.status.wait("thinking")
	case agent.ToolCallStarted:
		r.calls[e.CallID] = *e.Call
		r.started(e)
	case agent.ToolCallProgress:
		r.progress(*e.Progress)
	case agent.ToolCallFinished:
		r.finished(e)
		r.status.wait("waiting for the model")
	case agent.Retry:
		r.line(r.style.warn("~"), "%s; trying again in %s", e.Retry.Message, duration(e.Retry.WaitMS))
		r.status.wait("waiting to try again")
	case agent.ContextShortened:
		r.line(r.style.warn("~"), "%s", shortenedText(*e.Shortened))
	case agent.TurnFinished:
		r.end(e)
	}
	return r.err
}

func (r *renderer) write(s string) {
	if _, err := io.WriteString(r.out, s); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *renderer) text(s string) {
	s = terminal.Clean(s)
	if s == "" {
		return
	}
	r.status.clear()
	if r.apart || r.together && !r.spoke {
		r.apart = false
		r.write("\n")
	}
	r.write(s)
	r.spoke = true
	r.midLine = !strings.HasSuffix(s, "\n")
}

// line writes one line of status, below whatever the answer has so far.
func (r *renderer) line(mark, format string, args ...any) {
	if r.midLine {
		r.write("\n")
		r.midLine = false
	}
	r.apart = r.spoke
	r.status.print(mark + " " + terminal.Line(fmt.Sprintf(format, args...)))
}

func (r *renderer) started(e agent.Event) {
	r.printed, r.steps = 0, nil
	if e.Note == agent.NotRun {
		return
	}
	switch e.Tool {
	case agent.ListTool:
		r.status.wait("listing capabilities")
	case agent.RegisterTool:
		r.line(r.style.run("+"), "building %s", r.subject(*e.Call))
		r.status.wait("checking")
	case agent.ExecuteTool:
		r.line(r.style.run(">"), "running %s", strings.TrimSpace(r.subject(*e.Call)+" "+r.arguments(*e.Call)))
		r.status.wait("running " + r.subject(*e.Call))
	}
}

func (r *renderer) progress(p agent.Progress) {
	switch {
	case p.Stream != "":
		r.output(p.Line)
	case p.State == "running":
		r.status.wait("checking " + p.Step)
	default:
		note := ""
		if p.Note != "" {
			note = ": " + p.Note
			r.steps = append(r.steps, p.Step+note)
		}
		r.line("  "+r.style.state(p.State), "%s %s%s", p.Step, duration(p.MS), note)
	}
}

func (r *renderer) finished(e agent.Event) {
	call := r.calls[e.CallID]
	took := duration(e.DurationMS)
	if e.Result.Text == agent.SkippedResult {
		r.line(r.style.dim("-"), "%s was not run", e.Tool)
		return
	}
	if e.Result.Status == agent.Failed {
		what := map[string]string{
			agent.ListTool:     "listing capabilities failed",
			agent.RegisterTool: "not registered: " + r.subject(call),
			agent.ExecuteTool:  r.subject(call) + " failed",
		}[e.Tool]
		if what == "" {
			what = fmt.Sprintf("unknown tool %q", e.Tool)
		}
		r.line(r.style.fail("x"), "%s after %s", what, took)
		r.block(failureText(e))
		return
	}
	switch e.Tool {
	case agent.ListTool:
		var l capability.Listing
		_ = json.Unmarshal(e.Result.Detail, &l) // a listing of ours; zero values read well enough
		r.line(r.style.ok("v"), "listed %d of %s%s in %s", l.Shown, plural(l.Total, "capability", "capabilities"), r.query(call), took)
	case agent.RegisterTool:
		var a capability.Admission
		_ = json.Unmarshal(e.Result.Detail, &a)
		r.line(r.style.ok("v"), "built %s %s (%s) in %s; %s", a.Name, a.Version, a.Status, took, a.Grants)
		for _, w := range slices.DeleteFunc(a.Warnings, r.told) {
			r.line("  "+r.style.warn("!"), "%s", w)
		}
	case agent.ExecuteTool:
		var x agent.Execution
		_ = json.Unmarshal(e.Result.Detail, &x)
		r.line(r.style.ok("v"), "ran %s %s in %s%s", x.Name, x.Version, took, contacted(x.Network))
		for _, f := range filesText(&x) {
			r.line("  "+r.style.dim("-"), "%s", f)
		}
		for _, n := range slices.DeleteFunc(x.Notes, r.told) {
			r.line("  "+r.style.warn("!"), "%s", n)
		}
		if !x.OSLayer.On && !r.warned {
			r.warned = true
			r.line("  "+r.style.warn("!"), "without the operating system layer: %s", x.OSLayer.Why)
		}
	}
}

// filesText tells of the files that a run made or named.
func filesText(x *agent.Execution) []string {
	var lines []string
	if x.File != "" {
		lines = append(lines, "all of the result: "+x.File)
	}
	for _, f := range x.Files {
		lines = append(lines, fmt.Sprintf("file: %s (%s, %s)", f.Path, f.MediaType, size(f.Bytes)))
	}
	return lines
}

// told reports whether a warning was shown as that of a step of the gate.
func (r *renderer) told(warning string) bool { return slices.Contains(r.steps, warning) }

// contacted says in short who was talked to.
func contacted(decisions []egress.Decision) string {
	var hosts []string
	for _, d := range decisions {
		if (d.Allowed || d.BytesUp > 0) && !slices.Contains(hosts, d.Host) {
			hosts = append(hosts, d.Host)
		}
	}
	if len(hosts) == 0 {
		return ""
	}
	const most = 4
	if n := len(hosts) - most; n > 0 {
		hosts = append(hosts[:most], fmt.Sprintf("%d more", n))
	}
	return "; contacted " + strings.Join(hosts, ", ")
}

// failureText is what a person reads of a failed call: of an execution the
// failure alone, without what the model gets to mend it.
func failureText(e agent.Event) string {
	var x agent.Execution
	if e.Tool == agent.ExecuteTool && json.Unmarshal(e.Result.Detail, &x) == nil && x.Text != "" {
		return strings.Join(append([]string{x.Text}, x.Notes...), "\nnote: ")
	}
	return e.Result.Text
}

// What is shown of a capability's output: the result has all of it.
const (
	shownLines = 50
	shownRunes = 300
)

// output shows a line that a capability prints while it runs.
func (r *renderer) output(line string) {
	r.printed++
	switch {
	case r.printed <= shownLines:
		r.line("  "+r.style.dim("|"), "%s", clip(line, shownRunes))
	case r.printed == shownLines+1:
		r.line("  "+r.style.dim("|"), "… more output is not shown here")
	}
}

// block shows a failure's text, indented and not endless.
func (r *renderer) block(text string) {
	const most = 20
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		if i == most {
			r.line("   ", "… %d more lines", len(lines)-most)
			return
		}
		r.line("   ", "%s", clip(l, shownRunes))
	}
}

func (r *renderer) end(e agent.Event) {
	r.status.clear()
	if r.midLine {
		r.write("\n")
	}
	if r.together && r.spoke {
		r.write("\n")
	}
	r.midLine, r.apart = false, false
	summary := summarize(e)
	if e.Note != "" {
		r.line(r.style.warn("!"), "%s", e.Note)
	}
	switch {
	case e.Stop == agent.StopEndTurn && !r.spoke:
		r.line(r.style.warn("!"), "the model ended its turn without an answer (%s)", summary)
	case e.Stop == agent.StopEndTurn:
		r.line(r.style.dim("="), "%s", summary)
	case e.Error != nil:
		r.line(r.style.fail("x"), "%s", e.Error.Message)
		if e.Error.Hint != "" {
			r.line("   ", "%s", e.Error.Hint)
		}
		if *e.Usage != (agent.Usage{}) || e.CostPartial || e.ModelCalls > 1 {
			r.line(r.style.dim("="), "%s", summary)
		}
	default:
		r.line(r.style.fail("x"), "%s (%s)", stopText(e), summary)
	}
}

// summarize is what a turn took.
func summarize(e agent.Event) string {
	parts := []string{plural(e.ModelCalls, "model call", "model calls")}
	if u := *e.Usage; u != (agent.Usage{}) {
		parts = append(parts, fmt.Sprintf("%d in and %d out tokens", u.Input+u.CacheRead+u.CacheWrite, u.Output))
	}
	switch counted := *e.Usage != (agent.Usage{}); {
	case e.CostUSD != nil && (counted || *e.CostUSD > 0):
		parts = append(parts, cost(*e.CostUSD, e.CostPartial))
	case e.CostUSD == nil && counted:
		parts = append(parts, "cost unknown")
	case e.CostPartial:
		parts = append(parts, "tokens and cost unknown")
	}
	return strings.Join(append(parts, duration(e.DurationMS)), ", ")
}

// cost is an amount of USD with the digits that matter.
func cost(usd float64, partial bool) string {
	text := fmt.Sprintf("$%.2f", usd)
	switch {
	case usd == 0:
		text = "$0"
	case usd < 0.0001:
		text = "less than $0.0001"
	case usd < 1:
		text = fmt.Sprintf("$%.4f", usd)
	}
	if partial && usd > 0 {
		return "at least " + text
	}
	return text
}

func shortenedText(s agent.Shortened) string {
	why := "the conversation nears the model's context"
	if s.Reason == "overflow" {
		why = "the conversation was longer than the model's context"
	}
	return fmt.Sprintf("%s; the model sees %s shortened", why, plural(len(s.Calls), "old result", "old results"))
}

func stopText(e agent.Event) string {
	switch e.Stop {
	case agent.StopCancelled:
		return "cancelled"
	case agent.StopMaxTurns:
		return "stopped: the limit of model calls for a turn is reached; raise it with --max-turns"
	case agent.StopTimeout:
		return "stopped: the time for a turn is over; raise it with --timeout"
	case agent.StopBudget:
		return fmt.Sprintf("stopped: the %s has cost what it may; raise it with: tendril config set agent.budget.%sUSD AMOUNT", e.Budget, e.Budget)
	case agent.StopLoop:
		return "stopped: the model repeated the same call again and again"
	case agent.StopMaxTokens:
		return "stopped: the model's reply was cut at its token limit"
	case agent.StopRefusal:
		return "the model refused to answer"
	}
	return "stopped: " + string(e.Stop)
}

// subject is the capability that a call is about.
func (r *renderer) subject(c agent.Call) string {
	var input struct {
		Name       string          `json:"name"`
		Definition json.RawMessage `json:"definition"`
	}
	_ = json.Unmarshal(c.Input, &input) // wrong shapes have no subject
	if c.Name == agent.RegisterTool {
		var d struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(input.Definition, &d)
		input.Name = d.Name
	}
	if input.Name == "" {
		return "(unnamed)"
	}
	return clip(input.Name, 64)
}

func (r *renderer) arguments(c agent.Call) string {
	var input struct {
		Args json.RawMessage `json:"args"`
	}
	_ = json.Unmarshal(c.Input, &input)
	text := string(input.Args)
	var inString string // an object that came as a string
	if json.Unmarshal(input.Args, &inString) == nil {
		text = inString
	}
	return clip(text, 100)
}

func (r *renderer) query(c agent.Call) string {
	var input struct {
		Query string `json:"query"`
	}
	_ = json.Unmarshal(c.Input, &input)
	if input.Query == "" {
		return ""
	}
	return fmt.Sprintf(" for %q", clip(input.Query, 60))
}

func clip(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < time.Second {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
