// Package agent is the turn: a history in, a stream of events out. It owns the
// step loop, its bounds, the three tools and the system prompt, and knows no
// provider, no protocol and no terminal.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tendril-agent/tendril/internal/capability"
)

// Tool is something that a model can call.
//
// Call gets an input that is valid against the spec's schema. A panic in it
// becomes a failed result. It returns soon after ctx ends. report may be called
// from any goroutine; what is reported after Call returned is dropped.
type Tool interface {
	Spec() ToolSpec
	Call(ctx context.Context, in Invocation, report func(Progress)) Result
}

// Invocation is one call of a tool, with where it came from.
type Invocation struct {
	Input   json.RawMessage
	Session string
	Model   string // "provider/model"
	Request string // what the person asked for in this turn
}

// Limits bound a turn. A zero field means the default, or no limit where there
// is none.
type Limits struct {
	MaxTurns int           // model calls of a turn; default 100
	Timeout  time.Duration // wall clock of a turn; no default
	// The budgets end a turn before the model call that would follow when the
	// turn, its session, or all sessions of the day have cost that much. What has
	// no known price, or comes without figures, counts as nothing, and the turn's
	// end says so.
	BudgetUSD  float64
	SessionUSD float64
	DayUSD     float64
}

// Spending knows what other turns have cost.
type Spending interface {
	// Today is what all turns since midnight have cost, those that still run
	// included, in USD.
	Today(ctx context.Context) (float64, error)
}

// Facts are what is known of a model. Zero and nil mean unknown.
type Facts struct {
	ContextWindow int64 // tokens
	Price         Price
}

// Options make an [Agent].
type Options struct {
	Model  Model
	Facts  Facts
	System string // the system prompt
	Tools  []Tool
	Limits Limits
	// Spending is needed for Limits.DayUSD.
	Spending Spending
}

const (
	defaultMaxTurns = 100
	// maxIdenticalCalls is how many calls with the same tool and input in a row
	// end a turn as a loop.
	maxIdenticalCalls = 8
)

// errTurnTimeout is the cause of a turn's context that ran out of time.
var errTurnTimeout = errors.New("the turn ran out of time")

// errInterrupted is the cause of a turn's context whose process ends.
var errInterrupted = errors.New("the process of the turn ends")

// Cancellable returns a context for a turn: cancel, which somebody asks for, ends
// it as [StopCancelled]; the end of parent, of which nobody in the conversation
// knows, as [StopInterrupted].
func Cancellable(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() { end(errInterrupted) })
	return ctx, func() {
		stop()
		end(nil)
	}
}

// Agent runs turns. Its fields are set once; it is safe for concurrent use by
// turns of different sessions.
type Agent struct {
	model  Model
	facts  Facts
	system string
	tools  map[string]*CheckedTool
	specs  []ToolSpec
	limits Limits
	spent  Spending
}

// New makes an agent. It fails when a tool's schema does not compile.
func New(o Options) (*Agent, error) {
	a := &Agent{model: o.Model, facts: o.Facts, system: o.System, tools: make(map[string]*CheckedTool, len(o.Tools)), limits: o.Limits, spent: o.Spending}
	if o.Limits.DayUSD > 0 && o.Spending == nil {
		return nil, errors.New("a budget of a day needs to know what the day has cost")
	}
	if a.limits.MaxTurns <= 0 {
		a.limits.MaxTurns = defaultMaxTurns
	}
	for _, tool := range o.Tools {
		checked, err := Check(tool)
		if err != nil {
			return nil, err
		}
		a.tools[checked.spec.Name] = checked
		a.specs = append(a.specs, checked.spec)
	}
	return a, nil
}

// Session is a conversation as the agent sees it. One turn at a time may use it.
type Session struct {
	ID  string
	Log Log
}

// Run plays one turn: it appends content to the session and lets the model
// work until it is done. The events are the session's next ones; each is in the
// log before it is yielded. The last one, and only that, is TurnFinished; it
// comes whatever happens, and within a second when ctx ends. A consumer that
// stops early cancels the turn, which is then logged as cancelled.
func (a *Agent) Run(ctx context.Context, s Session, content []Block) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		ctx, cancel := context.WithCancelCause(capability.InTurn(ctx))
		defer cancel(nil)
		if a.limits.Timeout > 0 {
			clock := newClock(a.limits.Timeout, func() { cancel(errTurnTimeout) })
			defer clock.stop()
			ctx = context.WithValue(ctx, clockKey{}, clock)
		}
		t := &turn{agent: a, session: s, yield: yield, cancel: func() { cancel(nil) }, started: time.Now()}
		t.run(ctx, content)
	}
}

// errorInfo describes err for events.
func errorInfo(err error) *ErrorInfo {
	var m *ModelError
	if errors.As(err, &m) {
		return &ErrorInfo{Kind: string(m.Kind), Message: m.Message, Hint: m.Hint}
	}
	var l *logError
	if errors.As(err, &l) {
		return &ErrorInfo{Kind: "store", Message: l.Error(), Hint: "check the disk and the permissions of the Tendril folder"}
	}
	return &ErrorInfo{Kind: "internal", Message: err.Error()}
}

// logError is a failure to keep an event.
type logError struct{ err error }

func (e *logError) Error() string { return fmt.Sprintf("the session could not be saved: %v", e.err) }
func (e *logError) Unwrap() error { return e.err }
