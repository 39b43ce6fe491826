package host

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tendril-agent/tendril/internal/workspace"
)

// Folder is a folder of the workspace.
type Folder struct {
	Path    string  `json:"path" doc:"Relative to the workspace, with /; empty for the workspace"`
	Entries []Entry `json:"entries" doc:"Folders first, then by name"`
	Omitted int     `json:"omitted,omitempty" doc:"How many entries more there are"`
}

// Entry is something in a folder.
type Entry struct {
	Name     string    `json:"name"`
	Path     string    `json:"path,omitempty" doc:"Left out when no path can name it"`
	Kind     string    `json:"kind" enum:"file,folder,link,other"`
	Size     int64     `json:"size" doc:"Bytes, of a file"`
	Modified time.Time `json:"modified"`
	ReadOnly string    `json:"readOnly,omitempty" doc:"Why it cannot be changed or opened here"`
}

// File is a file with its text, if it is one.
type File struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Version  string    `json:"version,omitempty" doc:"Of the text, for saving it"`
	Text     *string   `json:"text,omitempty" doc:"All of it, byte for byte; left out when it is binary or too large"`
	Binary   bool      `json:"binary"`
	TooLarge bool      `json:"tooLarge"`
	ReadOnly string    `json:"readOnly,omitempty"`
}

// Saved is what a save led to.
type Saved struct {
	Version string `json:"version"`
	Warning string `json:"warning,omitempty"`
}

func (h *Host) filesAPI(api huma.API) {
	huma.Register(api, op("GET", "/api/files", "listFiles", "What is in a folder of the workspace", 200), h.listFiles)
	huma.Register(api, op("GET", "/api/files/content", "readFile", "The text of a file", 200), h.readFile)
	huma.Register(api, op("PUT", "/api/files/content", "saveFile", "Replace a text, if it is still the one that was read", 200), h.saveFile)
	huma.Register(api, op("POST", "/api/files/reveal", "revealFile", "Open the folder of a file in the system's file manager", 204), h.revealFile)
}

// inWorkspace does something in the workspace as the settings are now.
func inWorkspace[T any](ctx context.Context, h *Host, do func(*workspace.Workspace) (T, error)) (*of[T], error) {
	var out of[T]
	err := h.Files(ctx, func(w *workspace.Workspace) (err error) {
		out.Body, err = do(w)
		return err
	})
	if err != nil {
		return nil, fileFailure(err)
	}
	return &out, nil
}

func (h *Host) listFiles(ctx context.Context, in *struct {
	Path string `query:"path"`
},
) (*of[Folder], error) {
	return inWorkspace(ctx, h, func(w *workspace.Workspace) (Folder, error) {
		folder, err := w.List(in.Path)
		out := Folder{Path: folder.Path, Entries: []Entry{}, Omitted: folder.Omitted}
		for _, e := range folder.Entries {
			out.Entries = append(out.Entries, Entry{e.Name, e.Path, string(e.Kind), e.Size, e.Modified, e.ReadOnly})
		}
		return out, err
	})
}

func (h *Host) readFile(ctx context.Context, in *struct {
	Path string `query:"path" required:"true"`
},
) (*of[File], error) {
	return inWorkspace(ctx, h, func(w *workspace.Workspace) (File, error) {
		f, err := w.ReadText(in.Path)
		out := File{Path: f.Path, Size: f.Size, Modified: f.Modified, Version: f.Version, Binary: f.Binary, TooLarge: f.TooLarge, ReadOnly: f.ReadOnly}
		if f.Version != "" {
			out.Text = &f.Text
		}
		return out, err
	})
}

func (h *Host) saveFile(ctx context.Context, in *struct {
	Body struct {
		Path    string `json:"path"`
		Text    string `json:"text"`
		Version string `json:"version" doc:"That of the text that was read; empty makes a new file"`
	}
},
) (*of[Saved], error) {
	saved, err := inWorkspace(ctx, h, func(w *workspace.Workspace) (s Saved, err error) {
		s.Version, err = w.WriteText(in.Body.Path, in.Body.Text, in.Body.Version)
		if errors.Is(err, workspace.ErrNotSynced) {
			s.Warning, err = err.Error(), nil
		}
		return s, err
	})
	if err == nil {
		h.hub.publish("files", struct{}{})
	}
	return saved, err
}

func (h *Host) revealFile(ctx context.Context, in *struct {
	Body struct {
		Path string `json:"path"`
	}
},
) (*struct{}, error) {
	folder, err := inWorkspace(ctx, h, func(w *workspace.Workspace) (string, error) { return w.Reveal(in.Body.Path) })
	if err != nil {
		return nil, err
	}
	return nil, failure(h.Reveal(folder.Body))
}

// fileFailure is the problem of an error of the workspace.
func fileFailure(err error) error {
	for _, known := range []struct {
		err    error
		status int
		code   string
	}{
		{workspace.ErrChanged, http.StatusConflict, "changed"},
		{workspace.ErrGate, http.StatusForbidden, "gate"},
		{workspace.ErrReadOnly, http.StatusForbidden, "read_only"},
		{workspace.ErrContent, http.StatusUnprocessableEntity, "content"},
		{workspace.ErrPath, http.StatusUnprocessableEntity, "path"},
		{fs.ErrNotExist, http.StatusNotFound, "not_found"},
	} {
		if errors.Is(err, known.err) {
			return problemOf(known.status, known.code, err)
		}
	}
	return failure(err)
}
