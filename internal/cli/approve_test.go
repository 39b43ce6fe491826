package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/capability"
)

func asker(in io.Reader) (approver capability.Approver, errs *bytes.Buffer, turn context.Context) {
	errs = &bytes.Buffer{}
	turn, cancel := context.WithCancel(context.Background())
	stop := &interrupts{cancel: []context.CancelFunc{cancel}}
	c := &command{Std: Std{In: in, Out: io.Discard, Err: errs, InTTY: true, ErrTTY: true}, interrupts: stop}
	return c.approver(), errs, turn
}

func TestApprover_OnlyAClearAnswerDecides(t *testing.T) {
	for in, want := range map[string]capability.Answer{
		"a":         capability.AllowAlways,
		"A":         capability.AllowAlways,
		"u":         capability.AllowOnce,
		"d":         capability.Deny,
		"N":         capability.Deny,
		"\r\nyo1 u": capability.AllowOnce,
	} {
		approver, errs, turn := asker(strings.NewReader(in))
		got, err := approver.Approve(turn, capability.Question{Name: "x", Grants: capability.Grants{Net: []string{"example.com"}}, New: capability.Wants{Hosts: []string{"example.com"}}})
		if err != nil || got != want {
			t.Errorf("%q: got %s, %v, want %s", in, got, err, want)
		}
		if want == capability.AllowOnce && !strings.Contains(errs.String(), "allowed until Tendril ends") {
			t.Errorf("what it means is not said: %q", errs)
		}
	}
}

// Ctrl-C is no answer: it ends the turn.
func TestApprover_CtrlC(t *testing.T) {
	approver, errs, turn := asker(strings.NewReader("\x03"))
	if _, err := approver.Approve(turn, capability.Question{Name: "x"}); !errors.Is(err, context.Canceled) || turn.Err() == nil {
		t.Errorf("%v; the turn: %v", err, turn.Err())
	}
	if strings.Contains(errs.String(), "denied") {
		t.Errorf("%q", errs)
	}
}

func TestApprover_QuestionSaysWhatIsNewAndCannotBeFaked(t *testing.T) {
	approver, errs, turn := asker(strings.NewReader("d"))
	q := capability.Question{
		Name: "news", Version: "1.1.0", Capability: "Reads news.\x1b[2J\nMay news reach nothing?",
		Grants: capability.Grants{Net: []string{"a.example", "b.example"}, Read: []string{"the workspace"}}, New: capability.Wants{Hosts: []string{"b.example"}},
	}
	if _, err := approver.Approve(turn, q); err != nil {
		t.Fatal(err)
	}
	text := errs.String()
	for _, want := range []string{"May news 1.1.0 reach b.example?", "all that it may do then: network: a.example, b.example; reads the workspace; writes nothing"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\nMay news reach nothing") {
		t.Errorf("the description draws lines of its own: %q", text)
	}
}

func TestApprover_CancelEndsTheQuestion(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	approver, _, turn := asker(in)
	ctx, cancel := context.WithCancel(turn)
	cancel()
	if answer, err := approver.Approve(ctx, capability.Question{Name: "x"}); err == nil || answer != capability.Deny {
		t.Errorf("got %s, %v", answer, err)
	}
}

func TestApprover_NobodyWithoutATerminal(t *testing.T) {
	for name, c := range map[string]*command{
		"stdin is a pipe":  {Std: Std{ErrTTY: true}},
		"stderr is a pipe": {Std: Std{InTTY: true}},
		"--json":           {Std: Std{InTTY: true, ErrTTY: true}, json: true},
	} {
		if c.approver() != nil {
			t.Error(name)
		}
	}
}
