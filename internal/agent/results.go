package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tendril-agent/tendril/internal/sandbox"
)

// ResultsFolder is where results that are too long for the model are kept, in the
// folder of a session. Git ignores it.
const ResultsFolder = ".tendril-results"

const (
	keptResults     = 50       // files, the newest
	keptResultBytes = 64 << 20 // of all of them
	mostFiles       = 20       // that a result may name
	mostStrings     = 2000     // of a result that are looked at
	longestPath     = 1024
)

// File is a file of the session's folder that a result names.
type File struct {
	Path      string `json:"path"` // relative to that folder, with slashes
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
}

// keepResult writes a text into a new file of the results folder and returns its
// path, relative to the session's folder.
func keepResult(folder, name, text string, now time.Time) (string, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer root.Close()
	give := func(root *os.Root, made string) { // what we made, and nothing else: it could be a link
		if uid, gid, other := sandbox.Owner(folder); other {
			_ = root.Lchown(made, uid, gid) // root can read it at least
		}
	}
	switch info, err := root.Lstat(ResultsFolder); {
	case errors.Is(err, fs.ErrNotExist):
		if err := root.Mkdir(ResultsFolder, 0o700); err != nil {
			return "", err
		}
		give(root, ResultsFolder)
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is no folder", ResultsFolder)
	}
	results, err := root.OpenRoot(ResultsFolder)
	if err != nil {
		return "", err
	}
	defer results.Close()
	if file, err := results.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_, _ = file.WriteString("*\n") // without it git shows the folder
		file.Close()
		give(results, ".gitignore")
	}
	makeRoom(results, int64(len(text)))
	stamp := now.UTC().Format("20060102T150405")
	for n := range 100 {
		base := fmt.Sprintf("%s-%s.txt", stamp, name)
		if n > 0 {
			base = fmt.Sprintf("%s-%s-%d.txt", stamp, name, n)
		}
		file, err := results.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = file.WriteString(text)
		if err := errors.Join(err, file.Close()); err != nil {
			_ = results.Remove(base) // half of it helps nobody
			return "", err
		}
		give(results, base)
		return path.Join(ResultsFolder, base), nil
	}
	return "", fs.ErrExist
}

// makeRoom removes the oldest results until so many bytes fit. Other files there
// are let alone.
func makeRoom(results *os.Root, need int64) {
	entries, err := fs.ReadDir(results.FS(), ".")
	if err != nil {
		return
	}
	var files []fs.FileInfo
	total := need
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(info.Name(), ".txt") {
			continue
		}
		files = append(files, info)
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return cmp.Compare(a.Name(), b.Name()) })
	for len(files) > 0 && (len(files) >= keptResults || total > keptResultBytes) {
		total -= files[0].Size()
		_ = results.Remove(files[0].Name()) // the next one tries again
		files = files[1:]
	}
}

// namedFiles are the files of a folder that a result names, by strings of the
// returned value or else by whole lines of the text, and that the person would
// look at: those that were written since the run started, and pictures. Links that
// lead out of the folder and protected places are none.
func namedFiles(folder string, result *sandbox.Result, started time.Time) []File {
	if result.Outcome != sandbox.OK {
		return nil
	}
	var names []string
	if result.Value != nil {
		var value any
		if json.Unmarshal(result.Value, &value) != nil {
			return nil
		}
		names = stringsOf(value, nil)
	} else {
		names = strings.Split(result.Text, "\n")
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil
	}
	defer root.Close()
	var files []File
	for _, name := range names[:min(len(names), mostStrings)] {
		name, ok := localPath(strings.TrimSpace(name), real, folder)
		if !ok || protected(real, name) {
			continue
		}
		file, ok := fileIn(root, name, started.Add(-clockTick))
		if ok && !slices.ContainsFunc(files, func(f File) bool { return f.Path == file.Path }) {
			files = append(files, file)
		}
		if len(files) == mostFiles {
			break
		}
	}
	return files
}

// clockTick is by how much the time of a file may lag behind the clock.
const clockTick = 10 * time.Millisecond

// stringsOf collects the strings of a JSON value, but not the keys.
func stringsOf(value any, found []string) []string {
	if len(found) >= mostStrings {
		return found
	}
	switch v := value.(type) {
	case string:
		return append(found, strings.Split(v, "\n")...)
	case []any:
		for _, item := range v {
			found = stringsOf(item, found)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			found = stringsOf(v[key], found)
		}
	}
	return found
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// localPath makes a text a path relative to the first of the folders, if it can
// be one inside of them, which are two names of the same.
func localPath(name string, folders ...string) (string, bool) {
	if name == "" || len(name) > longestPath || strings.ContainsRune(name, 0) {
		return "", false
	}
	name = filepath.FromSlash(name)
	for _, base := range folders {
		if rel, err := filepath.Rel(base, name); filepath.IsAbs(name) && err == nil {
			name = rel
		}
	}
	name = filepath.Clean(name)
	return name, filepath.IsLocal(name)
}

// protected reports whether a path of a folder, by itself or by where its links
// lead, is in a place that no capability may read.
func protected(folder, name string) bool {
	full := filepath.Join(folder, name)
	resolved, err := filepath.EvalSymlinks(full)
	if err != nil {
		return true
	}
	for _, full := range []string{full, resolved} {
		rel, err := filepath.Rel(folder, full)
		if err != nil || sandbox.ProtectedPath(rel) {
			return true
		}
	}
	return false
}

// fileIn is a file if a result may show it: if it is a picture, or not older than since.
func fileIn(root *os.Root, name string, since time.Time) (File, bool) {
	info, err := root.Stat(name) // before it is opened: a pipe would block
	if err != nil || !info.Mode().IsRegular() {
		return File{}, false
	}
	kind := pictureType(root, name)
	if kind == "" && info.ModTime().Before(since) {
		return File{}, false
	}
	return File{filepath.ToSlash(name), cmp.Or(kind, mediaType(name)), info.Size()}, true
}

// pictureType is the media type of a picture by its first bytes, or "".
func pictureType(root *os.Root, name string) string {
	file, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	var head [12]byte
	n, _ := io.ReadFull(file, head[:]) // a shorter file is no picture
	switch b := head[:n]; {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return "image/gif"
	case len(b) == 12 && string(b[:4]) == "RIFF" && string(b[8:]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// mediaTypes are by the endings of names. The system's own table would say
// something else on each machine.
var mediaTypes = map[string]string{
	".css": "text/css", ".csv": "text/csv", ".htm": "text/html", ".html": "text/html", ".ics": "text/calendar", ".log": "text/plain",
	".md": "text/markdown", ".py": "text/x-python", ".sh": "text/x-sh", ".ts": "text/typescript", ".tsv": "text/tab-separated-values", ".txt": "text/plain",
	".js": "text/javascript", ".json": "application/json", ".jsonl": "application/jsonl", ".toml": "application/toml",
	".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
	".gz": "application/gzip", ".tar": "application/x-tar", ".zip": "application/zip", ".wasm": "application/wasm",
	".db": "application/vnd.sqlite3", ".sqlite": "application/vnd.sqlite3", ".parquet": "application/vnd.apache.parquet",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".epub": "application/epub+zip",
	".pdf": "application/pdf", ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".mp3":  "audio/mpeg", ".mp4": "video/mp4", ".ogg": "audio/ogg", ".svg": "image/svg+xml", ".wav": "audio/wav", ".webm": "video/webm",
}

// mediaType goes by the name.
func mediaType(name string) string {
	return cmp.Or(mediaTypes[strings.ToLower(filepath.Ext(name))], "application/octet-stream")
}
