package host

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// noncePlace is what index.html has where a nonce belongs.
const noncePlace = "__CSP_NONCE__"

// pages serves the app: the same page at each address that is no file, with a
// policy that lets it load nothing from elsewhere and run nothing that is not
// its own.
func (h *Host) pages() http.Handler {
	var index []byte
	if h.UI != nil {
		index, _ = fs.ReadFile(h.UI, "index.html") // without it there is no app
	}
	if index == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			page(w, http.StatusOK, "UI not built", "This tendril was built without its pages. Build them with: make web. The API and the commands work.")
		})
	}
	files := http.FileServerFS(h.UI)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		if info, err := fs.Stat(h.UI, name); err == nil && !info.IsDir() && name != "index.html" {
			if strings.HasPrefix(name, "assets/") { // their names change with their content
				w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
			}
			files.ServeHTTP(w, r)
			return
		}
		if path.Ext(name) != "" {
			page(w, http.StatusNotFound, "Not found", "There is no such page.")
			return
		}
		nonce := rand.Text()
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"+nonce+"'; img-src 'self' data:; "+
			"font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(bytes.ReplaceAll(index, []byte(noncePlace), []byte(nonce))) // the client may be gone
	})
}

// page is a page of one sentence.
func page(w http.ResponseWriter, status int, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>%[1]s</title><h1>%[1]s</h1><p>%[2]s</p></html>\n",
		html.EscapeString(title), html.EscapeString(text))
}
