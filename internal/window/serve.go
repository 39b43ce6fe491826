package window

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
)

// Serve is the child process of a native window: it takes orders from in, writes reports to out, and
// returns when the person has closed the window, in has ended or ctx is done. It keeps the calling
// goroutine's thread for GTK, and leaves one goroutine that reads in: the process should end after it.
func Serve(ctx context.Context, in io.Reader, out io.Writer, getenv func(name string) string) error {
	w := &reporter{to: out}
	err := serve(ctx, in, w, getenv)
	if err != nil {
		w.send(report{Failed: err.Error()})
	}
	return err
}

func serve(ctx context.Context, in io.Reader, out *reporter, getenv func(string) string) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineLimit)
	first, err := readOrder(lines)
	if err != nil {
		return err
	}
	if first.Open == nil {
		return errors.New("the first order does not open a window")
	}
	if err := checkURL(first.Open.URL); err != nil {
		return err
	}
	origin, err := url.Parse(first.Open.URL)
	if err != nil {
		return err
	}
	later := make(chan order)
	go func() {
		defer close(later)
		for {
			next, err := readOrder(lines)
			if err != nil {
				return // the end of orders, or nonsense: both close the window
			}
			select {
			case later <- next:
			case <-ctx.Done():
				return
			}
		}
	}()
	return show(ctx, *first.Open, origin, later, out, getenv)
}

// readOrder reads one order; io.EOF is the end of orders.
func readOrder(lines *bufio.Scanner) (order, error) {
	var o order
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			return o, err
		}
		return o, io.EOF
	}
	if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
		return o, fmt.Errorf("an order is no JSON object of the right shape: %w", err)
	}
	return o, nil
}

// reporter writes reports. A parent that does not read any more is gone: the end of orders tells.
type reporter struct {
	mu sync.Mutex
	to io.Writer
}

func (r *reporter) send(m report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(r.to).Encode(m)
}
