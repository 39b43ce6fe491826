package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tendril-agent/tendril/internal/agent"
)

// lineDelay is how long lines of output are gathered before they are told, so
// that a capability that prints much does not flood the client.
const lineDelay = 100 * time.Millisecond

// progress tells a client that gave a progress token what happens in its call:
// each step of the gate at once, lines of output gathered. The zero value tells
// nobody.
type progress struct {
	tell func(message string)
	news chan agent.Progress
	stop chan struct{}
	done chan struct{}
}

// startProgress begins to tell. finish must be called before the call is
// answered: nothing about it may follow its answer.
func startProgress(ctx context.Context, req *sdk.CallToolRequest) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return &progress{}
	}
	n := 0
	p := &progress{news: make(chan agent.Progress), stop: make(chan struct{}), done: make(chan struct{})}
	p.tell = func(message string) {
		n++
		// It fails when the call is cancelled or the client gone: then nobody listens.
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: message})
	}
	go p.run()
	return p
}

// report is given to the tool. It waits while the client is slow to read.
func (p *progress) report(news agent.Progress) {
	if p.news == nil {
		return
	}
	select {
	case p.news <- news:
	case <-p.stop:
	}
}

// finish tells what is left.
func (p *progress) finish() {
	if p.news == nil {
		return
	}
	close(p.stop)
	<-p.done
}

func (p *progress) run() {
	defer close(p.done)
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			p.tell(strings.Join(lines, "\n"))
			lines = nil
		}
	}
	timer := time.NewTimer(lineDelay)
	defer timer.Stop()
	for {
		select {
		case news := <-p.news:
			if news.Step != "" {
				flush()
				p.tell(stepMessage(news))
				continue
			}
			if lines == nil {
				timer.Reset(lineDelay)
			}
			lines = append(lines, news.Line)
		case <-timer.C:
			flush()
		case <-p.stop:
			flush()
			return
		}
	}
}

// stepMessage is a step of the gate in words.
func stepMessage(p agent.Progress) string {
	text := fmt.Sprintf("gate: %s %s", p.Step, p.State)
	if p.MS > 0 {
		text += fmt.Sprintf(" after %d ms", p.MS)
	}
	if p.Note != "" {
		text += ": " + p.Note
	}
	return text
}
