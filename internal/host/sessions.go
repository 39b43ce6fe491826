package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/session"
)

// SessionInfo is what a list tells of a session.
type SessionInfo struct {
	ID      string    `json:"id"`
	Title   string    `json:"title" doc:"Empty until something was said"`
	Folder  string    `json:"folder"`
	Client  string    `json:"client" doc:"Who began it: app, run, chat, or an editor"`
	Parent  string    `json:"parent,omitempty" doc:"The session that it was forked from"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Turns   int       `json:"turns"`
	CostUSD *float64  `json:"costUSD,omitempty"`
	Match   string    `json:"match,omitempty" doc:"Where a search found it"`
}

func infoOf(i session.Info) SessionInfo {
	return SessionInfo{i.ID, i.Title, i.Folder, i.Client, i.Parent, i.Created, i.Updated, i.Turns, i.CostUSD, i.Match}
}

// SessionList is a page of sessions, those that were used last first.
type SessionList struct {
	Sessions []SessionInfo `json:"sessions"`
	Next     string        `json:"next,omitempty" doc:"For after"`
}

// Conversation is a session with all that was said in it.
type Conversation struct {
	SessionInfo
	Epoch string       `json:"epoch"`
	Event uint64       `json:"event" doc:"The number of the last event that is in here"`
	Items []Item       `json:"items"`
	State SessionState `json:"state"`
}

// SessionPath is the path of an operation on a session.
type SessionPath struct {
	ID string `path:"id" maxLength:"100"`
}

type created struct {
	ID string `json:"id"`
}

func (h *Host) sessionAPI(api huma.API) {
	huma.Register(api, op("GET", "/api/sessions", "listSessions", "Find sessions", 200), h.listSessions)
	huma.Register(api, op("POST", "/api/sessions", "createSession", "Begin a session", 201), h.createSession)
	huma.Register(api, op("GET", "/api/sessions/{id}", "getSession", "All that was said in a session", 200), h.getSession)
	huma.Register(api, op("PATCH", "/api/sessions/{id}", "renameSession", "Give a session another title", 204), h.renameSession)
	huma.Register(api, op("DELETE", "/api/sessions/{id}", "deleteSession", "Delete a session with all that was said in it", 204), h.deleteSession)
	huma.Register(api, op("POST", "/api/sessions/{id}/fork", "forkSession", "Begin a session with what was said in another one", 201), h.forkSession)
	huma.Register(api, op("GET", "/api/sessions/{id}/export", "exportSession", "A session as a file", 200), h.exportSession)
	huma.Register(api, op("POST", "/api/sessions/{id}/prompt", "prompt", "Ask for something; answered when the prompt is stored", 202), func(ctx context.Context, in *struct {
		SessionPath
		Body struct {
			Text string `json:"text"`
		}
	},
	) (*struct{}, error) {
		return nil, failure(h.prompt(ctx, in.ID, in.Body.Text))
	})
	huma.Register(api, op("POST", "/api/sessions/{id}/cancel", "cancel", "Stop the turn that runs, if one does", 204), func(_ context.Context, in *struct {
		SessionPath
		Nothing
	},
	) (*struct{}, error) {
		return nil, failure(h.cancel(in.ID))
	})
	huma.Register(api, op("POST", "/api/sessions/{id}/mode", "setMode", "Change when a person is asked, from the next prompt on", 204), h.setMode)
	huma.Register(api, op("POST", "/api/sessions/{id}/permissions/{permission}", "decide", "Answer a question", 204), func(_ context.Context, in *struct {
		SessionPath
		Permission string `path:"permission" maxLength:"100"`
		Body       struct {
			Option string `json:"option" maxLength:"100"`
		}
	},
	) (*struct{}, error) {
		return nil, failure(h.decide(in.ID, in.Permission, in.Body.Option))
	})
}

func (h *Host) listSessions(ctx context.Context, in *struct {
	Query string `query:"query" maxLength:"1000" doc:"Words that all occur in one message, or in the title"`
	After string `query:"after" maxLength:"200"`
	Limit int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
},
) (*of[SessionList], error) {
	list, next, err := h.Sessions.List(ctx, session.Query{Text: in.Query, After: in.After, Limit: in.Limit})
	if err != nil {
		return nil, failure(err)
	}
	out := SessionList{Sessions: []SessionInfo{}, Next: next}
	for _, info := range list {
		out.Sessions = append(out.Sessions, infoOf(info))
	}
	return &of[SessionList]{out}, nil
}

func (h *Host) createSession(ctx context.Context, _ *Nothing) (*of[created], error) {
	folder, err := h.Folder()
	if err != nil {
		return nil, failure(err)
	}
	s, err := h.Sessions.Create(ctx, session.New{Folder: folder, Client: "app"})
	if err != nil {
		return nil, failure(err)
	}
	return h.begun(s)
}

func (h *Host) forkSession(ctx context.Context, in *struct {
	SessionPath
	Nothing
},
) (*of[created], error) {
	info, err := h.Sessions.Info(ctx, in.ID)
	if err != nil {
		return nil, failure(err)
	}
	s, err := h.Sessions.Fork(ctx, in.ID, session.New{Folder: info.Folder, Client: "app"})
	if err != nil {
		return nil, failure(err)
	}
	return h.begun(s)
}

// begun leaves a new session to the agent.
func (h *Host) begun(s *session.Session) (*of[created], error) {
	if err := s.Close(); err != nil {
		return nil, failure(err)
	}
	h.hub.publish("sessions", struct{}{})
	return &of[created]{created{s.ID()}}, nil
}

func (h *Host) getSession(ctx context.Context, in *SessionPath) (*of[Conversation], error) {
	info, err := h.Sessions.Info(ctx, in.ID)
	if err != nil {
		return nil, failure(err)
	}
	c, err := h.open(ctx, in.ID)
	if err != nil {
		return nil, failure(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return &of[Conversation]{Conversation{
		SessionInfo: infoOf(info), Epoch: h.hub.epoch, Event: h.hub.position(), Items: append([]Item{}, c.transcript.items...), State: c.state(),
	}}, nil
}

func (h *Host) renameSession(ctx context.Context, in *struct {
	SessionPath
	Body struct {
		Title string `json:"title" maxLength:"1000"`
	}
},
) (*struct{}, error) {
	if err := h.Sessions.Rename(ctx, in.ID, in.Body.Title); err != nil {
		return nil, failure(err)
	}
	h.hub.publish("sessions", struct{}{})
	return nil, nil
}

// deleteSession deletes a session in which no turn runs.
func (h *Host) deleteSession(ctx context.Context, in *SessionPath) (*struct{}, error) {
	h.mu.Lock()
	var agentChild *child
	if c := h.conversations[in.ID]; c != nil {
		if c.running {
			h.mu.Unlock()
			return nil, failure(errBusy)
		}
		agentChild = c.loaded
		delete(h.conversations, in.ID)
	}
	h.mu.Unlock()
	if agentChild != nil {
		err := agentChild.call(sdk.AgentMethodSessionClose, map[string]string{"sessionId": in.ID}, &json.RawMessage{})
		if err != nil && !errors.Is(err, errNoAgent) {
			return nil, failure(err)
		}
	}
	if err := h.Sessions.Delete(ctx, in.ID); err != nil {
		return nil, failure(err)
	}
	h.hub.publish("sessions", struct{}{})
	return nil, nil
}

func (h *Host) setMode(ctx context.Context, in *struct {
	SessionPath
	Body struct {
		Mode string `json:"mode" enum:"policy,ask"`
	}
},
) (*struct{}, error) {
	c, err := h.open(ctx, in.ID)
	if err != nil {
		return nil, failure(err)
	}
	if err := h.Sessions.SetMode(ctx, in.ID, in.Body.Mode); err != nil {
		return nil, failure(err)
	}
	h.mu.Lock()
	c.mode = in.Body.Mode
	agentChild := c.loaded
	h.tellState(c)
	h.mu.Unlock()
	if agentChild == nil {
		return nil, nil
	}
	return nil, failure(setMode(agentChild, in.ID, in.Body.Mode))
}

type download struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

func (h *Host) exportSession(ctx context.Context, in *struct {
	SessionPath
	Format string `query:"format" enum:"markdown,json" default:"markdown"`
},
) (*download, error) {
	info, err := h.Sessions.Info(ctx, in.ID)
	if err != nil {
		return nil, failure(err)
	}
	events, err := h.Sessions.Events(ctx, in.ID)
	if err != nil {
		return nil, failure(err)
	}
	name := func(ending string) string {
		return fmt.Sprintf(`attachment; filename="tendril-%s.%s"`, info.ID, ending)
	}
	if in.Format == "markdown" {
		return &download{"text/markdown; charset=utf-8", name("md"), []byte(session.Markdown(info, events))}, nil
	}
	text, err := json.MarshalIndent(session.Export{Session: info, Events: events}, "", "  ")
	if err != nil {
		return nil, problemOf(http.StatusInternalServerError, "", err)
	}
	return &download{"application/json", name("json"), text}, nil
}
