package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

type serverKey struct{}

// scriptServer is the server of one script: what the providers answer beside
// their streams. It keeps what it was asked, a line for each request.
type scriptServer struct {
	mu    sync.Mutex
	asked []string
}

// answerFile is one answer in a server file. The first that fits a request is
// given, any number of times.
type answerFile struct {
	To      string            `json:"to"`   // such as "GET /v1/models"
	When    string            `json:"when"` // what the request's body must hold
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	Text    string            `json:"text"` // in the place of body
	Pad     int               `json:"pad"`  // this many blanks before it
	Hang    bool              `json:"hang"` // instead of an answer
}

func cmdServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: server FILE")
	}
	var answers []answerFile
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &answers); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	s := ts.Value(serverKey{}).(*scriptServer)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, answers) }))
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ts.Setenv("SERVER", server.URL)
}

func (s *scriptServer) answer(w http.ResponseWriter, r *http.Request, answers []answerFile) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	to := r.Method + " " + r.URL.RequestURI()
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprintf("%s Authorization=%s x-api-key=%s api-key=%s", to,
		r.Header.Get("Authorization"), r.Header.Get("x-api-key"), r.Header.Get("api-key")))
	s.mu.Unlock()
	i := slices.IndexFunc(answers, func(a answerFile) bool { return a.To == to && strings.Contains(string(body), a.When) })
	if i < 0 {
		http.NotFound(w, r)
		return
	}
	a := answers[i]
	if a.Hang {
		<-r.Context().Done()
		return
	}
	for name, value := range a.Headers {
		w.Header().Set(name, value)
	}
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	_, _ = io.WriteString(w, strings.Repeat(" ", a.Pad))
	_, _ = io.WriteString(w, a.Text)
	_, _ = w.Write(a.Body)
}

func cmdAsked(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(serverKey{}).(*scriptServer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.asked, func(line string) bool { return strings.Contains(line, args[0]) }) == neg {
		ts.Fatalf("the server was asked:\n%s", strings.Join(s.asked, "\n"))
	}
}
