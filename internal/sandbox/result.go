package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/egress"
)

// noOutput stands for a text that would be blank.
const noOutput = "(no output)"

// mayRemain is said after a run that we ended.
const mayRemain = "It was stopped where it was: effects that it already had, such as written files or sent requests, may remain."

// tooLargeFile is the exit code of a process that the kernel ended for a file
// that was too large (SIGXFSZ). In the operating system layer the write fails
// instead, with an error that the code sees.
const tooLargeFile = 128 + 25

// printed is what a run wrote, sorted out.
type printed struct {
	started bool
	value   []byte // JSON, nil when nothing was returned
	stdout  string
	stderr  string // without failure
	failure string // Deno's own account of it
	threw   bool   // the bootstrap told of a failure

	allStderr string // a run that went well had no failure: what looked like one was printed

	heapFull bool // the engine said that its heap is full
}

func (r *run) result(out *output, state *os.ProcessState, cause error) Result {
	p := r.read(out)
	code, signaled := exitCode(state)
	if errors.Is(cause, errReturned) {
		code, signaled = 0, false
	}
	result := Result{
		Outcome:      outcome(p, code, signaled, cause, out.exceeded()),
		Stdout:       p.stdout,
		Stderr:       p.stderr,
		ExitCode:     code,
		DroppedBytes: out.out.dropped + out.err.dropped,
		Duration:     time.Since(r.begin),
		Peaks:        r.peaks,
		OSLayer:      r.layer,
		Flags:        r.flags,
		Network:      r.net,
		Warm:         r.warm,

		NetworkUnlisted: r.more,
	}
	if result.Outcome == OK {
		result.Stderr = p.allStderr
		result.Value = p.value
		result.Text = r.answer(p)
		return result
	}
	result.Error = r.explain(result, p, cause) + refusals(r.net)
	result.Text = failureText(result)
	return result
}

// read takes the frames out of the streams and cleans what is left.
func (r *run) read(out *output) printed {
	marker := frameMarker(r.nonce)
	head, tail := out.out.parts()
	stdout, frames := splitFrames(append(head, tail...), marker)
	p := printed{started: find(frames, frameStarted) != nil, stdout: r.clean(stdout)}
	if value := find(frames, frameValue); value != nil && json.Valid(value.payload) {
		p.value = r.redactJSON(escapeUnwanted(r.stage.hide(string(value.payload))))
	}
	r.readStderr(&p, out, marker)
	p.stderr, p.heapFull = cutCrash(p.stderr)
	return p
}

// readStderr splits off the account of the failure. It follows the error frame;
// an error outside of the import (in a timer, say) has none, but is the last
// thing that Deno writes.
func (r *run) readStderr(p *printed, out *output, marker []byte) {
	head, tail := out.err.parts()
	note := ""
	if out.err.dropped > 0 {
		note = fmt.Sprintf("\n[… %d bytes dropped …]\n", out.err.dropped)
	}
	before, frames := splitFrames(head, marker)
	after, more := splitFrames(tail, marker)
	at := -1
	if f := find(frames, frameError); f != nil {
		at = f.at
	} else if f := find(more, frameError); f != nil {
		at = len(before) + len(note) + f.at
	}
	text := string(before) + note + string(after)
	p.threw, p.allStderr = at >= 0, r.clean([]byte(text))
	if at < 0 {
		if at = uncaughtAt(text); at < 0 {
			at = len(text)
		}
	}
	p.stderr, p.failure = r.clean([]byte(text[:at])), r.clean([]byte(text[at:]))
}

// uncaughtAt finds the beginning of the last error that Deno itself reports.
func uncaughtAt(text string) int {
	at := max(strings.LastIndex(text, "error: Uncaught "), strings.LastIndex(text, "error: "+neverResolved))
	if at > 0 && text[at-1] != '\n' {
		return -1
	}
	return at
}

// cutCrash takes the engine's last words off stderr: statistics and addresses.
func cutCrash(stderr string) (text string, heapFull bool) {
	for _, start := range []string{"<--- Last few GCs --->", "#\n# Fatal "} {
		if at := strings.Index(stderr, start); at >= 0 && strings.Contains(stderr[at:], "\n# Fatal ") {
			return stderr[:at], strings.Contains(stderr[at:], " out of memory")
		}
	}
	return stderr, false
}

func (r *run) clean(raw []byte) string {
	return r.redact.Text(advise(r.stage.hide(cleanText(raw))))
}

// redactJSON takes secrets out of a JSON text. Where they were more than text in
// it, such as a number, the whole becomes a string.
func (r *run) redactJSON(value []byte) []byte {
	if r.redact == nil {
		return value
	}
	text := r.redact.Text(string(value))
	if json.Valid([]byte(text)) {
		return []byte(text)
	}
	quoted, _ := json.Marshal(text) // a string
	return quoted
}

// answer is the text of a run that went well.
func (r *run) answer(p printed) string {
	text := strings.TrimSpace(p.stdout)
	if p.value != nil {
		var s string
		if p.value[0] == '"' && json.Unmarshal(p.value, &s) == nil {
			text = r.clean([]byte(s))
		} else {
			text = cleanText(p.value)
		}
	}
	if strings.TrimSpace(text) == "" {
		return noOutput
	}
	return text
}

func outcome(p printed, code int, signaled bool, cause error, exceeded bool) Outcome {
	var limit *limitError
	switch {
	case errors.As(cause, &limit) && code != 0:
		return limit.outcome
	case signaled && code == tooLargeFile:
		return DiskLimit
	case exceeded:
		return OutputCapped
	case errors.Is(cause, errTimedOut) && code != 0:
		return TimedOut
	case cause != nil && code != 0:
		return Cancelled
	case signaled && p.heapFull:
		return OutOfMemory
	case signaled, !p.started:
		return Crashed
	case code != 0, p.threw:
		return Failed
	}
	return OK
}

// explain is the failure alone, in one or more lines.
func (r *run) explain(result Result, p printed, cause error) string {
	limits := r.job.Limits
	var limit *limitError
	if errors.As(cause, &limit) && result.Outcome == limit.outcome {
		return limit.text + ". " + mayRemain
	}
	switch result.Outcome {
	case DiskLimit:
		return fmt.Sprintf("wrote a file of more than the limit of %d MB. %s", limits.FileMB, mayRemain)
	case TimedOut:
		return fmt.Sprintf("timed out after %s. %s", limits.Timeout, mayRemain)
	case Cancelled:
		return "cancelled. " + mayRemain
	case OutputCapped:
		return fmt.Sprintf("printed more than the limit of %d bytes: cut there, at least %d more bytes were dropped. Print or return less, or write to a file. %s", limits.OutputBytes, result.DroppedBytes, mayRemain)
	case OutOfMemory:
		return fmt.Sprintf("ran out of memory: the heap is limited to %d MB. %s", limits.HeapMB, mayRemain)
	case Crashed:
		if !p.started {
			return fmt.Sprintf("deno ended with exit code %d before the capability was started", result.ExitCode)
		}
		return fmt.Sprintf("deno crashed (exit code %d). %s", result.ExitCode, mayRemain)
	}
	if text := authorError(p.failure); text != "" {
		return text
	}
	if result.ExitCode == 0 {
		return "the capability threw an error, and kept Deno from telling which: it handles uncaught errors itself"
	}
	return fmt.Sprintf("the capability ended with exit code %d", result.ExitCode)
}

// refusals tells which hosts were not reached, and why: what the code itself got
// to see of that is an odd error of its HTTP library.
func refusals(decisions []egress.Decision) string {
	const most = 5
	var lines []string
	for _, d := range decisions {
		if d.Reason != "" && !slices.Contains(lines, d.Reason) {
			lines = append(lines, d.Reason)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	if n := len(lines) - most; n > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", n))
	}
	return "\nnetwork: " + strings.Join(lines, "\nnetwork: ")
}

// failureText puts the error first, since long output is shortened elsewhere.
func failureText(result Result) string {
	text := result.Error
	if out := strings.TrimSpace(result.Stdout); out != "" {
		text += "\n\nstdout:\n" + out
	}
	if err := strings.TrimSpace(result.Stderr); err != "" {
		text += "\n\nstderr:\n" + err
	}
	return text
}
