package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
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
	switch info, err := root.Lstat(ResultsFolder); {
	case errors.Is(err, fs.ErrNotExist):
		if err := root.Mkdir(ResultsFolder, 0o700); err != nil {
			return "", err
		}
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

// namedFiles are the files of a folder that a result names: by strings of the
// returned value, or else by whole lines of the text. Links that lead out of the
// folder and protected places are none.
func namedFiles(folder string, result *sandbox.Result) []File {
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
	closed, _ := sandbox.Protected(real)
	var files []File
	for _, name := range names[:min(len(names), mostStrings)] {
		file, ok := fileIn(root, folder, real, closed, strings.TrimSpace(name))
		if ok && !slices.ContainsFunc(files, func(f File) bool { return f.Path == file.Path }) {
			files = append(files, file)
		}
		if len(files) == mostFiles {
			break
		}
	}
	return files
}

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

// fileIn looks whether a text is the path of a file in a folder.
func fileIn(root *os.Root, folder, real string, closed []string, name string) (File, bool) {
	if name == "" || len(name) > longestPath || strings.ContainsRune(name, 0) {
		return File{}, false
	}
	name = filepath.FromSlash(name)
	for _, base := range []string{real, folder} {
		if rel, err := filepath.Rel(base, name); filepath.IsAbs(name) && err == nil {
			name = rel
		}
	}
	name = filepath.Clean(name)
	if !filepath.IsLocal(name) {
		return File{}, false
	}
	for _, c := range closed {
		full := filepath.Join(real, name)
		if strings.EqualFold(full, c) || strings.HasPrefix(strings.ToLower(full), strings.ToLower(c)+string(filepath.Separator)) {
			return File{}, false
		}
	}
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return File{}, false
	}
	return File{filepath.ToSlash(name), mediaType(name), info.Size()}, true
}

// mediaTypes are those that not every system knows.
var mediaTypes = map[string]string{
	".csv": "text/csv", ".md": "text/markdown", ".ts": "text/typescript", ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".zip": "application/zip", ".txt": "text/plain", ".sqlite": "application/vnd.sqlite3", ".db": "application/vnd.sqlite3",
}

// mediaType goes by the name.
func mediaType(name string) string {
	ext := strings.ToLower(filepath.Ext(name))
	if known := mediaTypes[ext]; known != "" {
		return known
	}
	known, _, _ := strings.Cut(mime.TypeByExtension(ext), ";")
	return cmp.Or(known, "application/octet-stream")
}
