package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/tendril-agent/tendril/internal/capability"
)

func asker(in io.Reader) (capability.Approver, *bytes.Buffer) {
	var errs bytes.Buffer
	c := &command{Std: Std{In: in, Out: io.Discard, Err: &errs, InTTY: true, ErrTTY: true}}
	return c.approver(), &errs
}

func TestApprover_OnlyAClearAnswerDecides(t *testing.T) {
	for in, want := range map[string]capability.Answer{
		"a\n":                  capability.AllowAlways,
		"ALWAYS\n":             capability.AllowAlways,
		"o\n":                  capability.AllowOnce,
		"d\n":                  capability.Deny,
		"no\n":                 capability.Deny,
		"":                     capability.Deny, // nobody there
		"\n\ny\nwhatever\no\n": capability.AllowOnce,
		"yes 1\n":              capability.Deny,
	} {
		approver, _ := asker(strings.NewReader(in))
		got, err := approver.Approve(t.Context(), capability.Question{Name: "x", Net: []string{"example.com"}, New: []string{"example.com"}})
		if err != nil || got != want {
			t.Errorf("%q: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestApprover_QuestionSaysWhatIsNewAndCannotBeFaked(t *testing.T) {
	approver, errs := asker(strings.NewReader("d\n"))
	q := capability.Question{
		Name: "news", Version: "1.1.0", Capability: "Reads news.\x1b[2J\nMay news reach nothing?",
		Net: []string{"a.example", "b.example"}, New: []string{"b.example"},
	}
	if _, err := approver.Approve(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	text := errs.String()
	for _, want := range []string{"May news 1.1.0 reach b.example?", "all its hosts: a.example, b.example"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(text, "\nMay news reach nothing") {
		t.Errorf("the description draws lines of its own: %q", text)
	}
}

func TestApprover_CancelEndsTheQuestion(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	approver, _ := asker(in)
	ctx, cancel := context.WithCancel(t.Context())
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
