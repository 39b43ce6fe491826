package config

import (
	"errors"
	"fmt"
	"strings"
)

// ErrConfig matches every error of this package: the settings or the
// credentials are not usable as they are.
var ErrConfig = errors.New("configuration error")

// ErrModelFlag matches an unusable value of --model. It comes with [ErrConfig].
var ErrModelFlag = errors.New("unusable --model")

// Problem is one thing that is wrong with the settings.
type Problem struct {
	Path   string `json:"path"` // such as "agent.maxTurns"
	Reason string `json:"reason"`
}

func (p Problem) String() string { return p.Path + ": " + p.Reason }

// Warning is something that a person should know about the settings, and that
// does not keep them from being used.
type Warning struct {
	Path string `json:"path,omitempty"` // empty when it is about no single setting
	Text string `json:"text"`
}

func (w Warning) String() string {
	if w.Path == "" {
		return w.Text
	}
	return w.Path + ": " + w.Text
}

// Error tells all problems of a settings file at once. It matches [ErrConfig].
type Error struct {
	File     string
	Problems []Problem // at least one
}

func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return fmt.Sprintf("%s: %s", e.File, e.Problems[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s has %d problems:", e.File, len(e.Problems))
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  %s", p)
	}
	return b.String()
}

// Is implements [errors.Is] for [ErrConfig].
func (e *Error) Is(target error) bool { return target == ErrConfig }

// failure is an error of this package that is not about one setting.
type failure struct{ err error }

func failf(format string, args ...any) error { return &failure{err: fmt.Errorf(format, args...)} }

func (f *failure) Error() string        { return f.err.Error() }
func (f *failure) Unwrap() error        { return f.err }
func (f *failure) Is(target error) bool { return target == ErrConfig }

// modelFlagError is a value of --model that cannot be used.
type modelFlagError struct{ reason string }

func (e *modelFlagError) Error() string { return e.reason }
func (e *modelFlagError) Is(target error) bool {
	return target == ErrConfig || target == ErrModelFlag
}
