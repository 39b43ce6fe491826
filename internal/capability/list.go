package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Listing is the result of listCapabilities.
type Listing struct {
	Capabilities []Summary `json:"capabilities"`
	Total        int       `json:"total"`
	Shown        int       `json:"shown"`
	// Message is what to do when nothing matches, or how to see more.
	Message string `json:"message,omitempty"`
}

// Summary is a capability in a listing. Its texts are data that others wrote.
type Summary struct {
	Name        string          `json:"name"`
	Capability  string          `json:"capability"`
	Triggers    []string        `json:"triggers"`
	Suppression []string        `json:"suppression"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Status      string          `json:"status"`
}

// The most that a listing shows of a text or list that somebody made too long.
const (
	shownText    = 600
	shownMoments = 10
)

// List returns the capabilities: all while their summaries fit the size of a
// listing, else those that fit query best, or, without one, the most used.
func (r *Registry) List(ctx context.Context, query string) (Listing, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return Listing{}, err
	}
	var all []*entry
	for _, e := range ix.entries {
		if e.status != StatusArchived || e.conflict != "" {
			all = append(all, e)
		}
	}
	matches := len(all)
	if words := tokens(query); len(words) > 0 {
		matches = rank(all, words)
	} else if err := r.sortByUse(ctx, all); err != nil {
		return Listing{}, err
	}
	l := Listing{Capabilities: fitting(all, r.opts.ListBytes), Total: len(all)}
	if err := r.setStatus(ctx, l.Capabilities, all); err != nil {
		return Listing{}, err
	}
	l.Shown = len(l.Capabilities)
	l.Message = listMessage(l, query, matches)
	if ix.conflict != "" {
		l.Message = (&ConflictError{Message: ix.conflict}).Error()
	}
	return l, nil
}

// Archived returns the capabilities that are archived or deleted, by name: those
// that [Registry.Restore] brings back.
func (r *Registry) Archived(ctx context.Context) ([]Summary, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	archived := []Summary{}
	for _, e := range ix.entries {
		if e.status == StatusArchived && e.conflict == "" {
			archived = append(archived, summarize(e, nil))
		}
	}
	for _, name := range r.versionedNames() {
		if n, deleted := deletion(r.root, name); deleted && ix.find(name) == nil {
			s := Summary{Name: name, Status: VersionDeleted}
			if _, e, err := readTombstone(r.root, name, n); err == nil {
				s.Capability = clip(e.def.Capability, shownText)
			}
			archived = append(archived, s)
		}
	}
	slices.SortFunc(archived, func(a, b Summary) int { return strings.Compare(a.Name, b.Name) })
	return archived, nil
}

// Active returns the definitions of the capabilities that have a version which
// may run: not those in conflict, nor those whose first version waits for a
// person. They are as tools/index.json has them.
func (r *Registry) Active(ctx context.Context) ([]Definition, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	active := make([]Definition, 0, len(ix.entries))
	for _, e := range ix.entries {
		if e.conflict == "" && e.status != StatusPending && e.status != StatusArchived {
			active = append(active, e.def)
		}
	}
	return active, nil
}

// Names returns the names of all capabilities, archived ones too, in order.
func (r *Registry) Names(ctx context.Context) ([]string, error) {
	ix, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	names := ix.names()
	slices.Sort(names)
	return slices.Compact(names), nil
}

// IndexInfo describes tools/index.json, nil when there is none. Each commit, in
// any process, makes a new file of it, so this tells cheaply whether anything
// has changed.
func (r *Registry) IndexInfo() fs.FileInfo {
	info, err := r.root.Stat(indexPath)
	if err != nil {
		return nil
	}
	return info
}

func listMessage(l Listing, query string, matches int) string {
	switch {
	case l.Total == 0:
		return "No capability is registered yet. Register one with registerCapability, then execute it."
	case matches == 0 && l.Shown == l.Total:
		return "None matches the words of the query; these are all there are. If none of them fits, register one with registerCapability."
	case matches == 0:
		return fmt.Sprintf("None of the %d capabilities matches the words of the query. Try other words, or register one with registerCapability.", l.Total)
	case l.Shown < l.Total && query == "":
		return fmt.Sprintf("%d of %d are shown, the most used first. Give a query with a few words about what you need to find others.", l.Shown, l.Total)
	case l.Shown < l.Total:
		return fmt.Sprintf("The best %d of %d are shown. Use other words in the query to find others; if none fits, register one.", l.Shown, l.Total)
	}
	return ""
}

func summarize(e *entry, used track) Summary {
	s := Summary{
		Name: e.def.Name, Capability: clip(e.def.Capability, shownText),
		Triggers: shorten(e.def.Triggers), Suppression: shorten(e.def.Suppression), Status: status(e, used),
	}
	if len(e.def.Parameters) <= maxParameters {
		s.Parameters = bytes.ToValidUTF8(e.def.Parameters, []byte("\ufffd"))
	}
	return s
}

func shorten(list []string) []string {
	out := make([]string, 0, min(len(list), shownMoments))
	for _, text := range list[:min(len(list), shownMoments)] {
		out = append(out, clip(text, shownText))
	}
	return out
}

func status(e *entry, used track) string {
	switch {
	case e.conflict != "":
		return StatusConflict
	case e.status == StatusPending, e.status == StatusArchived:
		return e.status
	case used.has(e.def.Name, e.hash):
		return StatusActive
	}
	return StatusUnproven
}

// fitting returns summaries of the longest beginning of all that fits into size
// bytes of JSON, and of at least one. They count as unproven, which is the longest
// status.
func fitting(all []*entry, size int) []Summary {
	shown := []Summary{}
	for _, e := range all {
		s := summarize(e, nil)
		if size -= len(encode(s)) + 1; size < 0 && len(shown) > 0 {
			break
		}
		shown = append(shown, s)
	}
	return shown
}

// setStatus completes the summaries of the first entries of all.
func (r *Registry) setStatus(ctx context.Context, shown []Summary, all []*entry) error {
	names := make([]string, len(shown))
	for i, s := range shown {
		names[i] = s.Name
	}
	used, err := r.usage(ctx, names...)
	if err != nil {
		return err
	}
	for i := range shown {
		shown[i].Status = status(all[i], used)
	}
	return nil
}

// sortByUse puts the most used first, if not everything can be shown.
func (r *Registry) sortByUse(ctx context.Context, all []*entry) error {
	if len(fitting(all, r.opts.ListBytes)) == len(all) {
		return nil
	}
	used, err := r.usage(ctx)
	if err != nil {
		return err
	}
	runs := make(map[*entry]int, len(all))
	for _, e := range all {
		runs[e] = used.sum(e.def.Name).Runs
	}
	slices.SortStableFunc(all, func(a, b *entry) int { return runs[b] - runs[a] })
	return nil
}
