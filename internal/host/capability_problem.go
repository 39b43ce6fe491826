package host

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tendril-agent/tendril/internal/capability"
)

// capabilityProblem is the problem of an error of the registry.
func capabilityProblem(err error) error {
	var (
		known    *Problem
		unknown  *capability.UnknownError
		pending  *capability.PendingError
		refusal  *capability.Refusal
		refused  *capability.RefusedError
		missing  *capability.MissingSourceError
		conflict *capability.ConflictError
		input    *capability.InputError
		archived *capability.ArchivedError
		choose   *capability.UndecidedError
	)
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &unknown):
		p := problemOf(http.StatusNotFound, "not_found", fmt.Errorf("there is no capability %.100q", unknown.Name))
		switch {
		case unknown.Kept:
			p.Code, p.Hint = "deleted", "versions of it are kept: restore it"
		case len(unknown.Near) > 0:
			p.Hint = "near it: " + strings.Join(unknown.Near, ", ")
		}
		return p
	case errors.As(err, &pending):
		p := problemOf(http.StatusConflict, "pending", fmt.Errorf("%s %s was not run: it wants %s, which nobody has allowed, and nobody is asked here",
			pending.Name, pending.Version, pending.Wants))
		p.Hint = "allow it in a terminal: " + pending.Command
		return p
	case errors.As(err, &refusal):
		return refusalProblem(err, refusal)
	case errors.As(err, &refused):
		return problemOf(http.StatusUnprocessableEntity, "refused", err)
	case errors.As(err, &missing):
		return problemOf(http.StatusConflict, "missing", err)
	case errors.As(err, &conflict):
		return problemOf(http.StatusConflict, "conflict", err)
	case errors.As(err, &input):
		return problemOf(http.StatusUnprocessableEntity, "arguments", err)
	case errors.As(err, &archived):
		p := problemOf(http.StatusConflict, "archived", fmt.Errorf("%s is archived and does not run", archived.Name))
		p.Hint = "restore it"
		return p
	case errors.As(err, &choose):
		p := problemOf(http.StatusConflict, "undecided", errors.New(choose.Message))
		p.Hint = "choose a side for: " + strings.Join(choose.Names, ", ")
		return p
	case errors.Is(err, capability.ErrNoVersion):
		return problemOf(http.StatusNotFound, "no_version", err)
	case errors.Is(err, capability.ErrNothingToDo):
		return problemOf(http.StatusConflict, "unchanged", err)
	case errors.Is(err, capability.ErrReadOnly):
		return problemOf(http.StatusUnprocessableEntity, "read_only", err)
	}
	return failure(err)
}

// refusalProblem is the gate's no.
func refusalProblem(err error, r *capability.Refusal) error {
	p := problemOf(http.StatusUnprocessableEntity, "refused", errors.New(r.Message))
	p.Hint, p.Step = r.Hint, r.Step
	var refused *capability.RefusedError
	if errors.As(err, &refused) {
		p.Detail = fmt.Sprintf("%s %s may not run: %s", refused.Name, refused.Version, r.Message)
	}
	for _, d := range r.Diagnostics {
		p.Problems = append(p.Problems, Fault{Line: d.Line, Column: d.Column, Text: strings.TrimSpace(d.Code + " " + d.Message)})
	}
	return p
}
