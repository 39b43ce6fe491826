package host

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/jsonrpc"
	"github.com/tendril-agent/tendril/internal/session"
)

// Problem is an error of the API, as RFC 9457 has it, with what a program tells
// apart in Code.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code,omitempty"`
	Hint   string `json:"hint,omitempty"`

	Problems []Fault  `json:"problems,omitempty" doc:"What is wrong, one by one"`
	Step     string   `json:"step,omitempty" doc:"Of the gate, that refused a capability"`
	Sessions []string `json:"sessions,omitempty" doc:"In which a turn runs"`
}

// Fault is one thing that is wrong, and where.
type Fault struct {
	Path   string `json:"path,omitempty" doc:"Of the setting, or of the part of the request"`
	Line   int    `json:"line,omitempty" doc:"Of a source, from 1"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements [huma.StatusError].
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements [huma.ContentTypeFilter].
func (p *Problem) ContentType(string) string { return "application/problem+json" }

func problemOf(status int, code string, err error) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: err.Error(), Code: code}
}

// failure is the problem of an error of ours.
func failure(err error) error {
	var agentError *jsonrpc.Error
	var known *Problem
	var busy *session.BusyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &agentError):
		f := failureOf(err)
		p := problemOf(http.StatusBadGateway, f.Kind, errors.New(f.Message))
		p.Hint = f.Hint
		return p
	case errors.Is(err, session.ErrNotFound):
		return problemOf(http.StatusNotFound, "not_found", err)
	case errors.As(err, &busy):
		return problemOf(http.StatusConflict, "in_use", err)
	case errors.Is(err, errBusy):
		return problemOf(http.StatusConflict, "busy", err)
	case errors.Is(err, errGone):
		return problemOf(http.StatusConflict, "gone", err)
	case errors.Is(err, errNoAgent):
		return problemOf(http.StatusServiceUnavailable, "agent", err)
	case errors.Is(err, config.ErrConfig):
		return problemOf(http.StatusUnprocessableEntity, "settings", err)
	}
	return problemOf(http.StatusUnprocessableEntity, "", err)
}

// plainProblem is a [huma.Transformer]. It makes a problem of ours of what the
// framework says about a request, without the values that it repeats: one of
// them may be a key.
func plainProblem(_ huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &Problem{Title: model.Title, Status: model.Status, Detail: "the request cannot be answered: " + model.Detail, Code: "request"}
	for _, d := range model.Errors {
		f := Fault{Path: d.Location, Text: d.Message}
		switch {
		case d.Message == validation.MsgUnexpectedProperty: // its name came from outside
			f.Path, _, _ = strings.Cut(d.Location, ".")
		case d.Location == "body" && d.Value != nil: // the words of a decoder repeat what it read
			if _, raw := d.Value.(string); raw {
				f.Text = "is no JSON of the form that is described"
			}
		}
		p.Problems = append(p.Problems, f)
		p.Detail = fmt.Sprintf("the request is not as it must be: %s: %s", p.Problems[0].Path, p.Problems[0].Text)
	}
	return p, nil
}

// describeProblems lets the description say which errors there are: the
// framework would name its own.
func describeProblems(api *huma.OpenAPI) {
	schema := api.Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
	for _, item := range api.Paths {
		for _, o := range []*huma.Operation{item.Get, item.Put, item.Post, item.Patch, item.Delete} {
			if o == nil || o.Responses["default"] == nil {
				continue
			}
			o.Responses["default"].Content = map[string]*huma.MediaType{"application/problem+json": {Schema: schema}}
		}
	}
	delete(api.Components.Schemas.Map(), "ErrorModel")
	delete(api.Components.Schemas.Map(), "ErrorDetail")
}
