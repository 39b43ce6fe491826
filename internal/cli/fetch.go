package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// maxListBytes bounds what is read of a provider's list of models.
const maxListBytes = 4 << 20

// fetchJSON sends a request and decodes the answer into v. Redirects are
// refused: following one would hand the key to whoever the server names. The
// error goes on from the server's address, as in "… does not answer: …".
func fetchJSON(req *http.Request, v any) error {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var outer *url.Error // it repeats the address
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return errors.New("does not answer in time")
		case errors.As(err, &outer):
			err = outer.Err
		}
		return fmt.Errorf("cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return errors.New("redirects to another address, which is not followed; set the base URL to the final one")
	case resp.StatusCode != http.StatusOK:
		return &statusError{resp.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxListBytes+1))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("does not answer in time")
	case err != nil:
		return fmt.Errorf("stops in the middle of its answer: %w", err)
	case len(body) > maxListBytes:
		return fmt.Errorf("answers with more than %d MiB", maxListBytes>>20)
	case json.Unmarshal(body, v) != nil:
		return errNoList
	}
	return nil
}

// statusError is an answer that is none.
type statusError struct{ code int }

// refused says that the key was not accepted.
func (e *statusError) refused() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden
}

func (e *statusError) Error() string {
	if e.refused() {
		return fmt.Sprintf("does not accept the key (%d)", e.code)
	}
	return fmt.Sprintf("answers with %d %s", e.code, http.StatusText(e.code))
}

// getJSON is fetchJSON for a plain GET.
func getJSON(ctx context.Context, address string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	return fetchJSON(req, v)
}

// probeOllama asks a server for its models.
func probeOllama(ctx context.Context, host string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	var tags ollamaTags
	if err := getJSON(ctx, host+"/api/tags", &tags); err != nil {
		return nil, fmt.Errorf("%s %w", host, err)
	}
	var names []string
	for _, m := range tags.Models {
		names = append(names, m.Name)
	}
	return names, nil
}

// ollamaTags is what an Ollama server has.
type ollamaTags struct {
	Models []struct {
		Name string `json:"name"`
		Size int64  `json:"size"`
	} `json:"models"`
}
