// Command fakeprovider plays a script of model replies on a loopback port, for
// tests that need a provider outside of their own process:
//
//	fakeprovider -script FILE [-log FILE]
//
// It prints "PORT n" and serves until it is killed. Each request is logged as
// one JSON line.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/tendril-agent/tendril/internal/testkit"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakeprovider:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("fakeprovider", flag.ContinueOnError)
	scriptPath := flags.String("script", "", "script `file`")
	logPath := flags.String("log", "", "append requests to this `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	script, err := testkit.LoadScript(*scriptPath)
	if err != nil {
		return err
	}
	log := requestLog{}
	if *logPath != "" {
		file, err := os.OpenFile(*logPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		log.out = file
	}
	provider, err := testkit.Serve(func(r testkit.Request) testkit.Reply {
		log.write(r)
		return script.Answer(r)
	})
	if err != nil {
		return err
	}
	defer provider.Close()
	address, err := url.Parse(provider.URL)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintln(stdout, "PORT", address.Port())
	<-ctx.Done()
	return nil
}

// requestLog writes one JSON line for each request; without out it is silent.
type requestLog struct {
	mu  sync.Mutex
	out io.Writer
}

type logLine struct {
	N       int               `json:"n"`
	Time    float64           `json:"t"` // seconds
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
	BodyB64 string            `json:"body_b64,omitempty"` // of a body that is not UTF-8
}

func (l *requestLog) write(r testkit.Request) {
	if l.out == nil {
		return
	}
	line := logLine{N: r.N, Time: float64(r.Time.UnixNano()) / float64(time.Second), Path: r.Path, Headers: map[string]string{}}
	for name := range r.Headers {
		line.Headers[name] = r.Headers.Get(name)
	}
	if body := string(r.Body); utf8.ValidString(body) {
		line.Body = &body
	} else {
		line.BodyB64 = base64.StdEncoding.EncodeToString(r.Body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = json.NewEncoder(l.out).Encode(line)
}
