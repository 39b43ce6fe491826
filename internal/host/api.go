package host

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// maxBody bounds a request.
const maxBody = 8 << 20

// routes are all that the host serves.
func (h *Host) routes() http.Handler {
	mux := http.NewServeMux()
	h.api(mux)
	mux.HandleFunc("GET /api/events", func(w http.ResponseWriter, r *http.Request) { stream(w, r, h.hub, h.snapshot) })
	mux.HandleFunc("GET /api/debug/events", func(w http.ResponseWriter, r *http.Request) {
		stream(w, r, h.debug, func() (uint64, []byte) { return h.debug.start(), []byte("{}") }) // and then what is kept
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, refusal{status: http.StatusNotFound, detail: "there is no " + r.URL.Path})
	})
	mux.Handle("/", h.pages())
	return h.access.guard(mux)
}

// OpenAPI is the description of the API, in JSON.
func OpenAPI() ([]byte, error) {
	h := &Host{access: &access{}, hub: newHub(), debug: newHub()}
	return json.MarshalIndent(h.api(http.NewServeMux()).OpenAPI(), "", "  ")
}

// api registers all operations.
func (h *Host) api(mux *http.ServeMux) huma.API {
	config := huma.DefaultConfig("Tendril", "1")
	config.DocsPath, config.OpenAPIPath, config.SchemasPath = "", "", "" // the description is in the repository
	config.CreateHooks = nil                                             // no links to schemas in answers
	config.Transformers = []huma.Transformer{plainProblem}
	config.Info.Description = "The API of the app. See docs/host.md for signing in, events and errors."
	api := humago.New(mux, config)
	for _, v := range []any{State{}, itemEvent{}, appendEvent{}, resetEvent{}, DebugMessage{}, SetupProgress{}} { // of events
		api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(v), true, "")
	}
	h.stateAPI(api)
	h.sessionAPI(api)
	h.filesAPI(api)
	h.servicesAPI(api)
	describeProblems(api.OpenAPI())
	return api
}

// op describes an operation. Its name is its id.
func op(method, path, id, summary string, status int) huma.Operation {
	return huma.Operation{Method: method, Path: path, OperationID: id, Summary: summary, DefaultStatus: status, MaxBodyBytes: maxBody}
}

// Nothing is the body of a change that needs no more to be said.
type Nothing struct {
	Body struct{} `required:"false"`
}

type of[T any] struct{ Body T }

// State is what all of the app depends on.
type State struct {
	Version  string         `json:"version"`
	Epoch    string         `json:"epoch" doc:"Of this process of the host; with another one all event numbers are void"`
	Event    uint64         `json:"event" doc:"The number of the last event that is in here"`
	Agent    Agent          `json:"agent"`
	Sessions []SessionState `json:"sessions" doc:"Those that are open"`
	Overview
}

func (h *Host) state() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.supervisor.mu.Lock() // so that no event of it is missing
	defer h.supervisor.mu.Unlock()
	s := State{Version: h.Version, Epoch: h.hub.epoch, Event: h.hub.position(), Agent: h.supervisor.state, Sessions: []SessionState{}, Overview: h.overview()}
	for _, c := range h.conversations {
		s.Sessions = append(s.Sessions, c.state())
	}
	slices.SortFunc(s.Sessions, func(a, b SessionState) int { return strings.Compare(a.ID, b.ID) })
	return s
}

func (h *Host) snapshot() (uint64, []byte) {
	s := h.state()
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a bug
	}
	return s.Event, data
}

func (h *Host) stateAPI(api huma.API) {
	huma.Register(api, op("GET", "/api/state", "getState", "What all of the app depends on", 200), func(context.Context, *struct{}) (*of[State], error) {
		return &of[State]{h.state()}, nil
	})
	huma.Register(api, op("POST", "/api/login", "login", "Sign in with a link or the password", 200), h.login)
	huma.Register(api, op("POST", "/api/agent/restart", "restartAgent", "Start the agent afresh", 204), func(ctx context.Context, _ *Nothing) (*struct{}, error) {
		return nil, failure(h.supervisor.startAfresh(ctx))
	})
	h.findAPI(api)
}

// SignIn is what one signs in with: the code of a link, or else the password.
type SignIn struct {
	Code     string `json:"code,omitempty" maxLength:"100"`
	Password string `json:"password,omitempty" maxLength:"1000"`
}

// SignedIn comes with a cookie. Both are good until the host ends.
type SignedIn struct {
	Token string `json:"token" doc:"Each request needs it in X-Tendril-Token, and the cookie"`
}

func (h *Host) login(_ context.Context, in *struct{ Body SignIn }) (*struct {
	Cookie http.Cookie `header:"Set-Cookie"`
	Body   SignedIn
}, error,
) {
	if no := h.access.try(in.Body.Code, in.Body.Password); no.status != 0 {
		return nil, problemOf(no.status, no.code, errors.New(no.detail))
	}
	return &struct {
		Cookie http.Cookie `header:"Set-Cookie"`
		Body   SignedIn
	}{*h.access.cookie(), SignedIn{h.access.token}}, nil
}
