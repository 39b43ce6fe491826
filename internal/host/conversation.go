package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
)

// SessionState is what happens in a session that is open here.
type SessionState struct {
	ID          string       `json:"id"`
	Running     bool         `json:"running"`
	Since       time.Time    `json:"since,omitzero" doc:"When the turn that runs began"`
	Waiting     string       `json:"waiting,omitempty" enum:"model,gate,sandbox,you" doc:"What a turn that runs waits for"`
	Model       string       `json:"model,omitempty" doc:"Of the last turn"`
	Mode        string       `json:"mode" enum:"policy,ask"`
	Usage       Usage        `json:"usage" doc:"Of all turns"`
	Permissions []Permission `json:"permissions" doc:"Questions that wait for an answer"`
}

// conversation is an open session. It is guarded by the mutex of the host.
type conversation struct {
	id         string
	updated    time.Time // of what transcript was read from
	transcript *transcript
	mode       string
	loaded     *child       // that has it open, nil for none
	soon       map[int]bool // items whose last lines are still to be told

	running     bool
	since       time.Time
	cancelled   bool          // the turn that runs was
	accepted    chan struct{} // closed when the prompt is stored
	permissions []*question
}

func (c *conversation) state() SessionState {
	s := SessionState{ID: c.id, Running: c.running, Model: c.transcript.model, Mode: c.mode, Usage: c.transcript.usage, Permissions: []Permission{}}
	for _, q := range c.permissions {
		s.Permissions = append(s.Permissions, q.Permission)
	}
	if c.running {
		s.Since, s.Waiting = c.since, c.waiting()
	}
	return s
}

// waiting names what the turn waits for.
func (c *conversation) waiting() string {
	if len(c.permissions) > 0 {
		return "you"
	}
	for _, at := range c.transcript.calls {
		switch call := c.transcript.items[at].Tool; {
		case call.Status != "running":
		case call.Tool == agent.ExecuteTool:
			return "sandbox"
		case call.Tool == agent.RegisterTool:
			return "gate"
		}
	}
	return "model"
}

// tellState publishes the state of a conversation. The host is locked.
func (h *Host) tellState(c *conversation) { h.hub.publish("session", c.state()) }

// itemEvent is an item that is new or replaced.
type itemEvent struct {
	Session string `json:"session"`
	Index   int    `json:"index"`
	Item    Item   `json:"item"`
}

// appendEvent is text that an item goes on with.
type appendEvent struct {
	Session string `json:"session"`
	Index   int    `json:"index"`
	Text    string `json:"text"`
}

type resetEvent struct {
	Session string `json:"session"`
}

// tell publishes changes of a conversation. The host is locked.
func (h *Host) tell(c *conversation, changes []change) {
	for _, ch := range changes {
		if ch.Text != "" {
			h.hub.publish("append", appendEvent{c.id, ch.Index, ch.Text})
		} else {
			h.hub.publish("item", itemEvent{c.id, ch.Index, c.transcript.items[ch.Index]})
		}
	}
}

// linesAfter is how long lines of output are gathered: each tells its item anew.
const linesAfter = 100 * time.Millisecond

// tellSoon publishes an item a moment later, as it is then. The host is locked.
func (h *Host) tellSoon(c *conversation, changes []change) {
	if len(c.soon) == 0 && len(changes) > 0 {
		c.soon = map[int]bool{}
		time.AfterFunc(linesAfter, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.tellLines(c)
		})
	}
	for _, ch := range changes {
		c.soon[ch.Index] = true
	}
}

// tellLines publishes what is still to be told. The host is locked.
func (h *Host) tellLines(c *conversation) {
	for at := range c.soon {
		if at < len(c.transcript.items) { // it was not read anew meanwhile
			h.tell(c, []change{{Index: at}})
		}
	}
	c.soon = nil
}

// open returns a conversation as it is kept, and reads it if that is needed.
func (h *Host) open(ctx context.Context, id string) (*conversation, error) {
	info, err := h.Sessions.Info(ctx, id)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	c := h.conversations[id]
	fresh := c != nil && (c.running || !info.Updated.After(c.updated))
	h.mu.Unlock()
	if fresh {
		return c, nil
	}
	events, err := h.Sessions.Events(ctx, id)
	if err != nil {
		return nil, err
	}
	read := newTranscript(events)
	h.mu.Lock()
	defer h.mu.Unlock()
	if c = h.conversations[id]; c == nil {
		c = &conversation{id: id, mode: info.Mode}
		h.conversations[id] = c
	} else if c.running || c.transcript.seq >= read.seq {
		return c, nil // somebody was faster
	} else {
		h.hub.publish("reset", resetEvent{id})
	}
	c.transcript, c.updated = read, info.Updated
	if read.open && c.loaded == nil { // the process that had it may run elsewhere; what is missing then comes with the next look
		read.end(info.Updated, &Turn{Number: read.turn, Stop: string(agent.StopInterrupted)})
	}
	return c, nil
}

var errBusy = errors.New("a turn runs in this session; wait for its end, or stop it")

// prompt begins a turn, and returns when its prompt is stored: until then the
// person keeps what they wrote.
func (h *Host) prompt(ctx context.Context, id, text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("the prompt is empty; write what you want to be done")
	}
	agentChild, err := h.supervisor.await(ctx)
	if err != nil {
		return err
	}
	c, err := h.open(ctx, id)
	if err != nil {
		return err
	}
	h.mu.Lock()
	if c.running {
		h.mu.Unlock()
		return errBusy
	}
	accepted := make(chan struct{})
	c.running, c.since, c.cancelled, c.accepted = true, time.Now(), false, accepted
	h.tellState(c)
	h.mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- h.play(c, agentChild, text) }()
	select {
	case <-accepted:
		return nil
	case err := <-ended:
		select {
		case <-accepted: // it was short
			return nil
		default:
		}
		if err == nil {
			err = errors.New("the turn was stopped before it began")
		}
		return err
	}
}

// play plays one turn in the agent.
func (h *Host) play(c *conversation, agentChild *child, text string) error {
	err := h.load(c, agentChild)
	if err == nil {
		err = agentChild.call(sdk.AgentMethodSessionPrompt, map[string]any{
			"sessionId": c.id, "prompt": []any{map[string]string{"type": "text", "text": text}},
		}, &json.RawMessage{})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.withdraw(c, "")
	c.running, c.accepted = false, nil
	h.tell(c, c.transcript.end(time.Now(), &Turn{Number: c.transcript.turn, Stop: string(agent.StopInterrupted), Error: failureOf(err)}))
	c.updated = time.Now()
	h.tellState(c)
	h.hub.publish("sessions", struct{}{}) // its title, its cost
	return err
}

// load opens a conversation in the agent, which reads the mode that is kept.
func (h *Host) load(c *conversation, agentChild *child) error {
	h.mu.Lock()
	loaded, mode := c.loaded == agentChild, c.mode
	h.mu.Unlock()
	if loaded {
		return nil
	}
	err := agentChild.call(sdk.AgentMethodSessionLoad, map[string]any{"sessionId": c.id, "cwd": "", "mcpServers": []any{}}, &json.RawMessage{})
	if err != nil {
		return err
	}
	events, err := h.Sessions.Events(agentChild.ctx, c.id) // as it is now that nobody else can write
	if err != nil {
		return err
	}
	h.mu.Lock()
	c.loaded = agentChild
	if read := newTranscript(events); read.seq != c.transcript.seq {
		c.transcript = read
		h.hub.publish("reset", resetEvent{c.id})
	}
	now := c.mode
	h.mu.Unlock()
	if now != mode { // it was changed meanwhile
		return setMode(agentChild, c.id, now)
	}
	return nil
}

func setMode(agentChild *child, id, mode string) error {
	return agentChild.call(sdk.AgentMethodSessionSetMode, map[string]string{"sessionId": id, "modeId": mode}, &json.RawMessage{})
}

// cancel ends the turn that runs, if one does.
func (h *Host) cancel(id string) error {
	h.mu.Lock()
	c := h.conversations[id]
	if c == nil || !c.running {
		h.mu.Unlock()
		return nil
	}
	c.cancelled = true
	h.withdraw(c, "")
	agentChild := c.loaded
	h.mu.Unlock()
	if agentChild == nil {
		return nil // it is being loaded; its turn is told by accept
	}
	return agentChild.conn.Notify(sdk.AgentMethodSessionCancel, map[string]string{"sessionId": id})
}

// took takes an event of a turn from the agent.
func (h *Host) took(params json.RawMessage) error {
	var e agent.Event
	if err := json.Unmarshal(params, &e); err != nil {
		return fmt.Errorf("an event of the agent cannot be read: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.conversations[e.Session]
	if c == nil || !c.running {
		return fmt.Errorf("an event of a session %.40q in which no turn runs", e.Session)
	}
	before := c.waiting()
	changes := c.transcript.add(e)
	if e.Progress != nil && e.Progress.Stream != "" {
		h.tellSoon(c, changes)
	} else {
		h.tellLines(c)
		h.tell(c, changes)
	}
	switch e.Type {
	case agent.TurnStarted:
		close(c.accepted)
		h.hub.publish("sessions", struct{}{}) // its title
		if c.cancelled {                      // while it was loaded
			go func() { _ = h.cancel(c.id) }()
		}
	case agent.ToolCallFinished:
		h.withdraw(c, e.CallID)
		if e.Tool == agent.RegisterTool {
			h.hub.publish("capabilities", struct{}{})
		}
	}
	if e.Type == agent.TurnStarted || e.Type == agent.UsageReported || before != c.waiting() {
		h.tellState(c)
	}
	return nil
}

// lost forgets which conversations a child had open. Their turns end by
// themselves, because their calls do.
func (h *Host) lost(gone *child) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conversations {
		if c.loaded == gone {
			c.loaded = nil
		}
	}
}

// failureOf is an error of the agent for a person; nil for none and for the end
// of the connection, of which the state of the agent tells.
func failureOf(err error) *Failure {
	var failure *jsonrpc.Error
	switch {
	case errors.As(err, &failure):
		f := &Failure{Kind: "agent", Message: failure.Message}
		if data, err := json.Marshal(failure.Data); err == nil {
			_ = json.Unmarshal(data, f) // its kind and hint, if it has those
		}
		f.Message = strings.TrimSuffix(f.Message, "; "+f.Hint)
		return f
	case err == nil, errors.Is(err, errNoAgent):
		return nil
	}
	return &Failure{Kind: "agent", Message: err.Error()}
}
