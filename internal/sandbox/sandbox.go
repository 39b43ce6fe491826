// Package sandbox runs a capability in Deno, with exactly the permissions of
// its grant, and checks its source without running it.
package sandbox

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/tendril-agent/tendril/internal/egress"
)

// ErrNoDeno means that no usable Deno was found. The error that wraps it says
// where we looked and which command fetches it.
var ErrNoDeno = errors.New("deno not found")

// Grant is what one run may reach. It is complete: nothing is added to it but
// what the runtime itself needs.
type Grant struct {
	// Net holds host, host:port, *.host or *; empty means no network.
	Net []string `json:"net"`
	// Read and Write are paths, absolute or relative to the workspace of the job.
	// nil means the workspace; protected places (see [Protected]) stay closed
	// either way, an empty slice means none.
	Read  []string `json:"read"`
	Write []string `json:"write"`
}

// Limits bound one run. A zero field means the default.
type Limits struct {
	Timeout     time.Duration `json:"timeout_ns"`       // default 45 s
	OutputBytes int64         `json:"output_bytes"`     // stdout and stderr together, an eighth of it for stderr; default 1 MiB
	HeapMB      int           `json:"heap_mb"`          // V8 heap; default 256
	RSSMB       int           `json:"rss_mb"`           // all memory; default 512
	FileMB      int           `json:"file_mb"`          // of one file; default 64
	WrittenMB   int           `json:"written_mb"`       // written to files in all; default 256
	Files       int           `json:"files"`            // new files; default 5,000
	Processes   int           `json:"processes"`        // processes and threads; default 96
	CPU         time.Duration `json:"cpu_ns,omitempty"` // processor time; none by default
}

// Job is one execution.
type Job struct {
	// Name is the capability's; errors name its file as Name + ".ts".
	Name   string
	Source []byte
	// Lock is the lock of the remote modules that the source imports, as
	// [Runner.Lock] made it; nil is none.
	Lock []byte
	// Args is a JSON object; empty means {}. Its bytes reach JSON.parse unchanged.
	Args      json.RawMessage
	Workspace string // absolute
	Grant     Grant
	Limits    Limits
	// Secrets are variables of the environment of this run alone. They are taken
	// out of all that comes from it, and so are those of Hide, which it does not get.
	Secrets map[string]string
	Hide    map[string]string
	// Output, if set, gets each line as it is printed, cleaned like the result.
	// It is called from one goroutine at a time, and not after Run returned.
	Output func(stream, line string)
	// Explain adds [Result.Flags].
	Explain bool
}

// Outcome says how a run ended.
type Outcome string

// The outcomes of a run.
const (
	OK           Outcome = "ok"
	Failed       Outcome = "failed"       // the code threw, or exited with another code than 0
	TimedOut     Outcome = "timeout"      // Limits.Timeout
	OutputCapped Outcome = "output_limit" // Limits.OutputBytes
	OutOfMemory  Outcome = "memory_limit" // Limits.HeapMB, Limits.RSSMB
	DiskLimit    Outcome = "disk_limit"   // Limits.WrittenMB
	FilesLimit   Outcome = "files_limit"  // Limits.Files
	ProcessLimit Outcome = "process_limit"
	CPULimit     Outcome = "cpu_limit"
	Cancelled    Outcome = "cancelled" // the context ended
	Crashed      Outcome = "crashed"   // Deno itself died or never started the code
)

// Result is what a run left behind. All texts are valid UTF-8 without NUL and
// without colour codes or temporary paths.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// Text is the answer by the rules of a result: the returned value (a string
	// as it is, anything else as JSON), else trimmed stdout, else "(no output)".
	// After a failure it tells what was printed, the error with the author's own
	// line numbers, and, after a kill, that effects already made may remain. It
	// is never blank.
	Text string `json:"text"`
	// Value is what the default export returned, nil when it returned nothing.
	// What a text must not hold is escaped in it.
	Value  json.RawMessage `json:"value,omitempty"`
	Stdout string          `json:"stdout,omitempty"`
	Stderr string          `json:"stderr,omitempty"`
	// Error is the failure alone.
	Error    string `json:"error,omitempty"`
	ExitCode int    `json:"exit_code"`
	// DroppedBytes counts output beyond the cap that was seen before the kill.
	DroppedBytes int64         `json:"dropped_bytes,omitempty"`
	Duration     time.Duration `json:"duration_ns"`
	Peaks        Peaks         `json:"peaks"`
	OSLayer      OSLayer       `json:"os_layer"`
	// Warm: a process that was started before the job came ran it.
	Warm bool `json:"warm,omitempty"`
	// Network is what the egress proxy decided.
	Network []egress.Decision `json:"network,omitempty"`
	// NetworkUnlisted counts, by host, the requests that are not among Network.
	NetworkUnlisted map[string]int `json:"network_unlisted,omitempty"`
	// Flags are those that Deno was started with, if the job asked for them.
	Flags []string `json:"flags,omitempty"`
}

// Import is one module that a source names.
type Import struct {
	Specifier string
	Line      int // from 1
	Column    int // from 1
	Dynamic   bool
	TypeOnly  bool
}

// Diagnostic is a complaint about a source at a place in it. Line and Column
// count from 1, and are 0 when the complaint has no place.
type Diagnostic struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}
