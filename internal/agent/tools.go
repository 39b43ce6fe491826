package agent

import (
	"context"
	_ "embed" // the texts and schemas
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/sandbox"
)

var (
	//go:embed text/list.md
	listText string
	//go:embed text/list.json
	listSchema []byte
	//go:embed text/register.md
	registerText string
	//go:embed text/register.json
	registerSchema []byte
	//go:embed text/execute.md
	executeText string
	//go:embed text/execute.json
	executeSchema []byte
)

// Runner runs one job to its end. Its error means that the run could not even
// be started.
type Runner interface {
	Run(ctx context.Context, job sandbox.Job) (sandbox.Result, error)
}

// Tools makes the three tools of a workspace.
func Tools(registry *capability.Registry, executor *Executor) []Tool {
	return []Tool{listTool{registry}, registerTool{registry, executor}, executor}
}

// sources remembers, by session, whose source the model has seen.
type sources struct{ seen sync.Map }

// first reports whether this is the first time in a session, and notes it.
func (s *sources) first(session, name string) bool {
	_, before := s.seen.LoadOrStore([2]string{session, name}, true)
	return !before
}

type listTool struct{ registry *capability.Registry }

func (listTool) Spec() ToolSpec {
	return ToolSpec{Name: ListTool, Description: strings.TrimSpace(listText), Schema: listSchema}
}

func (t listTool) Call(ctx context.Context, in Invocation, _ func(Progress)) Result {
	var input struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(in.Input, &input); err != nil {
		return failed(err.Error())
	}
	listing, err := t.registry.List(ctx, input.Query)
	if err != nil {
		return failed(err.Error())
	}
	return completedJSON(listing)
}

type registerTool struct {
	registry *capability.Registry
	executor *Executor
}

func (registerTool) Spec() ToolSpec {
	return ToolSpec{Name: RegisterTool, Description: strings.TrimSpace(registerText), Schema: registerSchema}
}

func (t registerTool) Call(ctx context.Context, in Invocation, report func(Progress)) Result {
	var input struct {
		Definition json.RawMessage `json:"definition"`
		Code       string          `json:"code"`
	}
	if err := json.Unmarshal(in.Input, &input); err != nil {
		return failed(err.Error())
	}
	definition, err := capability.ParseDefinition(input.Definition)
	if err != nil {
		return failed(err.Error())
	}
	by := capability.Provenance{By: capability.ByModel, Session: in.Session, Request: in.Request, Model: in.Model}
	admission, err := t.registry.Register(ctx, definition, input.Code, by, reportSteps(report))
	if err != nil {
		return refused(ctx, err)
	}
	t.executor.shown.first(in.Session, admission.Name)
	t.executor.warm(ctx, admission)
	return Result{Status: Completed, Text: admissionText(admission), Detail: marshal(admission)}
}

// admissionText is what the model reads of an admission; hashes and nanoseconds
// are for others.
func admissionText(a *capability.Admission) string {
	type gateStep struct {
		Step  string `json:"step"`
		State string `json:"state"`
		MS    int64  `json:"ms"`
	}
	steps := make([]gateStep, 0, len(a.Evidence.Steps))
	for _, s := range a.Evidence.Steps {
		steps = append(steps, gateStep{s.Name, string(s.State), s.Duration.Milliseconds()})
	}
	var locked []string
	for _, d := range a.Dependencies {
		if d.Direct || d.Kind == "https" {
			locked = append(locked, d.String())
		}
	}
	next := "execute it by its name"
	if a.Command != "" {
		next = "it waits for a person, who can run: " + a.Command
	}
	return string(marshal(struct {
		Registered string     `json:"registered"`
		Version    string     `json:"version"`
		Status     string     `json:"status"`
		Grants     string     `json:"grants"`
		Locked     []string   `json:"dependencies,omitempty"`
		Gate       []gateStep `json:"gate"`
		Warnings   []string   `json:"warnings"`
		Next       string     `json:"next"`
	}{a.Name, a.Version, a.Status, a.Grants.String(), locked, steps, a.Warnings, next}))
}

// Executor runs capabilities by name: the execute tool, and the command line's
// way to run one.
type Executor struct {
	Registry  *capability.Registry
	Runner    Runner
	Workspace string
	Limits    sandbox.Limits
	Explain   bool // adds to each Execution what it was started with
	// Secrets finds the values of secrets; nil has none.
	Secrets Secrets

	// Handed is shared by the executors of a process; nil is one of its own.
	Handed *HandedOut

	shown sources
	own   HandedOut
}

// Secrets finds the value of a secret by its name; "" when it is not set. The
// error says why that could not be found out.
type Secrets interface {
	Value(ctx context.Context, name string) (string, error)
}

// Execution is what is known of one run of a capability.
type Execution struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Hash    string `json:"hash"`
	// Notes are for the person: drift, what was not granted.
	Notes []string `json:"notes,omitempty"`
	// File is where the whole text is, relative to the folder of the session, when
	// the model sees only a part of it.
	File string `json:"file,omitempty"`
	// Files are those of that folder that the result names.
	Files []File `json:"files,omitempty"`
	sandbox.Result
	// Grant and Limits are what the run had, if that is to be explained.
	Grant  *sandbox.Grant  `json:"grant,omitempty"`
	Limits *sandbox.Limits `json:"limits,omitempty"`

	source []byte
}

// Spec implements [Tool].
func (x *Executor) Spec() ToolSpec {
	return ToolSpec{Name: ExecuteTool, Description: strings.TrimSpace(executeText), Schema: executeSchema}
}

// Call implements [Tool].
func (x *Executor) Call(ctx context.Context, in Invocation, report func(Progress)) Result {
	var input struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(in.Input, &input); err != nil {
		return failed(err.Error())
	}
	execution, err := x.Execute(ctx, input.Name, input.Args, in.Session, report)
	if err != nil {
		return refused(ctx, err)
	}
	result := Result{Status: Completed, Text: forModel(execution.Text, execution.File), Detail: marshal(execution)}
	if execution.Outcome != sandbox.OK {
		// Not every provider marks a result as an error, so its text does.
		result.Status, result.Text = Failed, fmt.Sprintf("%s failed: %s", execution.Name, result.Text)
		for _, note := range execution.Notes {
			result.Text += "\nnote: " + note
		}
		result.Text += x.toMend(execution, in.Session)
	}
	return result
}

// maxShownSource is the size up to which a failing source is shown.
const maxShownSource = 16 << 10

// toMend is the source of a capability that failed and that the model has not
// seen in this session: without it, it could only write it anew.
func (x *Executor) toMend(e *Execution, session string) string {
	if e.Outcome != sandbox.Failed || len(e.source) > maxShownSource || !x.shown.first(session, e.Name) {
		return ""
	}
	return fmt.Sprintf("\n\nThe source of %s %s, to be mended and registered again:\n%s", e.Name, e.Version, e.source)
}

// Execute resolves a capability to an admitted version and runs it. The error
// says why nothing was run; a run that failed is an Execution.
func (x *Executor) Execute(ctx context.Context, name string, args json.RawMessage, session string, report func(Progress)) (*Execution, error) {
	version, err := x.Registry.Resolve(ctx, name, reportSteps(report))
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if err := version.CheckArgs(args); err != nil {
		return nil, fmt.Errorf("%s was not run: %w", name, err)
	}
	secrets, hide, err := x.secrets(ctx, version)
	if err != nil {
		return nil, fmt.Errorf("%s was not run: %w", name, err)
	}
	job := sandbox.Job{
		Secrets: secrets, Hide: hide,
		Name: version.Name, Source: version.Source, Lock: version.Lock, Args: args, Workspace: x.Workspace,
		Grant: version.Grant, Limits: x.Limits.Narrowed(version.Limits),
		Explain: x.Explain,
		Output:  func(stream, line string) { report(Progress{Stream: stream, Line: line}) },
	}
	started := time.Now()
	result, err := x.Runner.Run(ctx, job)
	if err != nil {
		return nil, err
	}
	execution := &Execution{Name: version.Name, Version: version.Version, Hash: version.Hash, Notes: version.Notes, Result: result, source: version.Source}
	execution.Files = namedFiles(x.Workspace, &execution.Result, started)
	if isLong(execution.Text) {
		if execution.File, err = keepResult(x.Workspace, execution.Name, execution.Text, started); err != nil {
			execution.Notes = append(execution.Notes, fmt.Sprintf("its long result could not be kept in a file: %v", err))
		}
	}
	if x.Explain {
		limits := job.Limits.WithDefaults()
		execution.Grant, execution.Limits = &job.Grant, &limits
	}
	err = x.Registry.Record(context.WithoutCancel(ctx), capability.Run{
		Name: version.Name, Version: version.Version, Hash: version.Hash, Session: session, Started: started, Duration: result.Duration,
		Outcome: string(result.Outcome), OutputBytes: int64(len(result.Stdout) + len(result.Stderr)),
	})
	if err != nil {
		execution.Notes = append(execution.Notes, fmt.Sprintf("the run could not be recorded: %v", err))
	}
	return execution, nil
}

// reportSteps shows steps of the gate as progress.
func reportSteps(report func(Progress)) func(capability.Step) {
	return func(s capability.Step) {
		report(Progress{Step: s.Name, State: string(s.State), Note: s.Note, MS: s.Duration.Milliseconds()})
	}
}

const (
	modelHead = 22 << 10 // bytes of a long result's beginning that the model sees
	modelTail = 10 << 10 // and of its end
)

// isLong reports whether the model sees only a part of a text.
func isLong(text string) bool { return len(text) > modelHead+modelTail }

// forModel shortens a result to what the model reads. file is where all of it is.
func forModel(text, file string) string {
	if !isLong(text) {
		return text
	}
	head, tail := text[:modelHead], text[len(text)-modelTail:]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	for !utf8.ValidString(tail) {
		tail = tail[1:]
	}
	left := len(text) - len(head) - len(tail)
	advice := "return less, or only what is needed"
	if file != "" {
		advice = fmt.Sprintf("all of it is in the file %s of the workspace, for a capability to read; or return only what is needed", file)
	}
	return fmt.Sprintf("%s\n[… %d of %d bytes left out here; %s …]\n%s", head, left, len(text), advice, tail)
}

// cancelledOr says what the model should read of a call that a cancel ended.
func cancelledOr(ctx context.Context, err error) string {
	switch {
	case errors.Is(context.Cause(ctx), errTurnTimeout):
		return errTurnTimeout.Error() + ": " + err.Error()
	case errors.Is(context.Cause(ctx), errInterrupted):
		return interruptedResult
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case ctx.Err() != nil:
		return "cancelled: " + err.Error()
	}
	return err.Error()
}

// refused is the result of a call that did nothing. A refusal of the gate is its
// detail.
func refused(ctx context.Context, err error) Result {
	result := failed(cancelledOr(ctx, err))
	var refusal *capability.Refusal
	if errors.As(err, &refusal) {
		result.Detail = marshal(refusal)
	}
	return result
}

func completedJSON(v any) Result {
	raw := marshal(v)
	return Result{Status: Completed, Text: string(raw), Detail: raw}
}

// marshal encodes values of ours, which always encode.
func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		raw, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return raw
}
