package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/terminal"
)

const (
	maxLiveLines = 50      // of a call's output that are shown while it runs; its result has all
	maxLiveRunes = 300     // of such a line
	maxContent   = 4 << 20 // bytes of a result's text; the session keeps all
	maxRawOutput = 1 << 20 // bytes of a result's details, which are left out beyond it
)

// call is a tool call that runs.
type call struct {
	tool   string
	name   string   // of the capability
	code   string   // that is to be registered
	path   string   // of the capability's file; "" when it has none
	before *string  // its source before this call; nil for none
	live   []string // steps of the gate and lines of output
}

// callStarted tells of a call, and returns when that is written: the tool starts
// afterwards.
func (t *translator) callStarted(ctx context.Context, e agent.Event) {
	c := &call{tool: e.Tool}
	var input struct {
		Name       string `json:"name"`
		Query      string `json:"query"`
		Code       string `json:"code"`
		Definition struct {
			Name string `json:"name"`
		} `json:"definition"`
	}
	_ = json.Unmarshal(e.Call.Input, &input) // what is wrong with it, the result will say
	title, kind := line(e.Tool), sdk.ToolKindOther
	switch e.Tool {
	case agent.ListTool:
		title, kind = "List capabilities", sdk.ToolKindSearch
		if input.Query != "" {
			title += ": " + line(input.Query)
		}
	case agent.RegisterTool:
		c.name, c.code = input.Definition.Name, input.Code
		title, kind = "Build "+line(c.name), sdk.ToolKindEdit
		t.lookUp(ctx, c)
	case agent.ExecuteTool:
		c.name = input.Name
		title, kind = "Run "+line(c.name), sdk.ToolKindExecute
	}
	t.calls[e.CallID] = c
	t.order = append(t.order, e.CallID)
	status := sdk.ToolCallStatusInProgress
	if e.Note == agent.NotRun {
		status = sdk.ToolCallStatusPending
	}
	t.send(sdk.StartToolCall(sdk.ToolCallId(e.CallID), title, sdk.WithStartKind(kind), sdk.WithStartStatus(status), sdk.WithStartRawInput(e.Call.Input)))
	if !t.replay {
		_ = t.server.conn.Sync() // it fails only when the connection is over
	}
}

// lookUp finds what a registration replaces: in a replay that of an earlier
// registration of the session, for what came before is not known.
func (t *translator) lookUp(ctx context.Context, c *call) {
	path, text, ok := t.server.Source(ctx, c.name)
	c.path = path
	if t.replay {
		text, ok = t.kept[c.name]
	}
	if ok {
		c.before = &text
	}
}

// callProgress shows steps of the gate and lines of output, as many as can be
// read: each update repeats those before it.
func (t *translator) callProgress(e agent.Event) {
	c := t.calls[e.CallID]
	if c == nil || t.replay || len(c.live) >= maxLiveLines {
		return
	}
	p := *e.Progress
	p.Line = clip(p.Line, maxLiveRunes)
	switch {
	case p.Stream != "":
		c.live = append(c.live, p.Line)
	case p.State == "running":
	default:
		step := fmt.Sprintf("%s: %s", p.Step, p.State)
		if p.Note != "" {
			step += ": " + p.Note
		}
		c.live = append(c.live, clip(step, maxLiveRunes))
	}
	update := sdk.SessionToolCallUpdate{
		ToolCallId: sdk.ToolCallId(e.CallID), Status: sdk.Ptr(sdk.ToolCallStatusInProgress), Meta: meta(map[string]any{"progress": p}),
	}
	if len(c.live) > 0 {
		update.Content = content(strings.Join(c.live, "\n"))
	}
	t.send(sdk.SessionUpdate{ToolCallUpdate: &update})
}

func (t *translator) callFinished(e agent.Event) {
	c := t.calls[e.CallID]
	if c == nil || e.Result == nil {
		return
	}
	if e.Result.Status == agent.Failed {
		t.finish(e.CallID, sdk.ToolCallStatusFailed, content(personsText(e)), e.Result.Detail)
		return
	}
	shown := content(personsText(e))
	if e.Tool == agent.RegisterTool {
		shown = append(t.diff(c), content(admitted(e.Result))...)
		t.kept[c.name] = c.code
	}
	var named []sdk.ToolCallLocation
	if e.Tool == agent.ExecuteTool {
		links, locations := t.files(e.Result.Detail)
		shown, named = append(shown, links...), locations
	}
	t.finish(e.CallID, sdk.ToolCallStatusCompleted, shown, e.Result.Detail, named...)
}

// files are links to the files that a result names, and where they are.
func (t *translator) files(detail json.RawMessage) (links []sdk.ToolCallContent, locations []sdk.ToolCallLocation) {
	var x agent.Execution
	if json.Unmarshal(detail, &x) != nil {
		return nil, nil
	}
	t.session.mu.Lock()
	folder := t.session.folder
	t.session.mu.Unlock()
	files := x.Files
	if x.File != "" {
		files = append([]agent.File{{Path: x.File, MediaType: "text/plain", Bytes: int64(len(x.Text))}}, files...)
	}
	for _, f := range files {
		full := filepath.Join(folder, filepath.FromSlash(f.Path))
		block, ok := picture(folder, f)
		if !ok {
			block = sdk.ResourceLinkBlock(path.Base(f.Path), fileURI(full))
			block.ResourceLink.MimeType, block.ResourceLink.Size = &f.MediaType, sdk.Ptr(int(f.Bytes))
		}
		links = append(links, sdk.ToolContent(block))
		locations = append(locations, sdk.ToolCallLocation{Path: full})
	}
	return links, locations
}

// maxPicture is the size in bytes up to which a picture is shown in a session
// instead of a link to it.
const maxPicture = 1 << 20

// picture is a file of a folder as a picture, if it is one and small enough.
func picture(folder string, f agent.File) (sdk.ContentBlock, bool) {
	if !strings.HasPrefix(f.MediaType, "image/") || f.MediaType == "image/svg+xml" || f.Bytes > maxPicture {
		return sdk.ContentBlock{}, false
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return sdk.ContentBlock{}, false
	}
	defer root.Close()
	if info, err := root.Stat(filepath.FromSlash(f.Path)); err != nil || !info.Mode().IsRegular() || info.Size() > maxPicture {
		return sdk.ContentBlock{}, false // it is not what it was
	}
	data, err := root.ReadFile(filepath.FromSlash(f.Path))
	if err != nil {
		return sdk.ContentBlock{}, false
	}
	block := sdk.ImageBlock(base64.StdEncoding.EncodeToString(data), f.MediaType)
	block.Image.Uri = sdk.Ptr(fileURI(filepath.Join(folder, filepath.FromSlash(f.Path))))
	return block, true
}

// fileURI is the address of a file by its absolute path.
func fileURI(full string) string {
	slashed := filepath.ToSlash(full)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive of Windows
	}
	return (&url.URL{Scheme: "file", Path: slashed}).String()
}

// finish sends the last update of a call.
func (t *translator) finish(id string, status sdk.ToolCallStatus, shown []sdk.ToolCallContent, detail json.RawMessage, named ...sdk.ToolCallLocation) {
	c := t.calls[id]
	delete(t.calls, id)
	t.order = slices.DeleteFunc(t.order, func(other string) bool { return other == id })
	opts := []sdk.ToolCallUpdateOpt{sdk.WithUpdateStatus(status), sdk.WithUpdateContent(shown)}
	if len(detail) > 0 && len(detail) <= maxRawOutput {
		opts = append(opts, sdk.WithUpdateRawOutput(detail))
	}
	if c.tool == agent.RegisterTool && status == sdk.ToolCallStatusCompleted && c.path != "" {
		opts = append(opts, sdk.WithUpdateLocations([]sdk.ToolCallLocation{{Path: c.path}}))
	}
	if len(named) > 0 {
		opts = append(opts, sdk.WithUpdateLocations(named))
	}
	t.send(sdk.UpdateToolCall(sdk.ToolCallId(id), opts...))
}

// diff is the change of a capability's source.
func (t *translator) diff(c *call) []sdk.ToolCallContent {
	if c.path == "" || c.before != nil && *c.before == c.code {
		return nil
	}
	if c.before == nil {
		return []sdk.ToolCallContent{sdk.ToolDiffContent(c.path, c.code)}
	}
	return []sdk.ToolCallContent{sdk.ToolDiffContent(c.path, c.code, *c.before)}
}

// admitted says in words that a capability was kept.
func admitted(r *agent.Result) string {
	var a capability.Admission
	if json.Unmarshal(r.Detail, &a) != nil || a.Name == "" {
		return r.Text
	}
	text := fmt.Sprintf("Kept as %s %s (%s); %s", a.Name, a.Version, a.Status, a.Grants)
	for _, w := range a.Warnings {
		text += "\nwarning: " + w
	}
	if a.Command != "" {
		text += "\nIt waits for a person, who can run: " + a.Command
	}
	return text
}

// personsText is a result as a person reads it: all of an execution's, of which
// the model may get only a part.
func personsText(e agent.Event) string {
	var x agent.Execution
	if e.Tool != agent.ExecuteTool || json.Unmarshal(e.Result.Detail, &x) != nil || x.Text == "" {
		return e.Result.Text
	}
	return strings.Join(append([]string{x.Text}, x.Notes...), "\nnote: ")
}

// content is one text, without its middle if it is very long.
func content(text string) []sdk.ToolCallContent {
	if len(text) > maxContent {
		text = strings.ToValidUTF8(text[:maxContent/2], "") + "\n[… left out here; the session has all of it …]\n" + strings.ToValidUTF8(text[len(text)-maxContent/2:], "")
	}
	return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))}
}

// line is a text of a model on one line of a title.
func line(s string) string { return clip(terminal.Line(s), 200) }

func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
