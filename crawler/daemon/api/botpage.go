package api

import (
	"net/http"
	"strings"
)

// BotPageHandler is what site owners may see of a daemon: the page that they find behind a
// crawler's User-Agent, and nothing else of a page, and the keys of its signatures.
func BotPageHandler(d Daemon, page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		switch path := r.URL.Path; {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			writeProblem(w, newProblem(http.StatusMethodNotAllowed, "%s is for reading", path))
		case path == "/":
			http.Redirect(w, r, botPath, http.StatusFound)
		case path == botPath, strings.HasPrefix(path, assetsPath):
			page.ServeHTTP(w, r)
		case path == keyDirectoryPath:
			serveSigningKeyDirectory(d, w, r)
		default:
			writeProblem(w, NotFound("there is nothing at %s", path))
		}
	})
}

// serveSigningKeyDirectory answers with the key directory of the host that is asked.
func serveSigningKeyDirectory(d Daemon, w http.ResponseWriter, r *http.Request) {
	directory := d.PublishedSigningKeys(r.Host)
	if directory == nil {
		writeProblem(w, NotFound("no project signs its requests with keys of %s", r.Host))
		return
	}
	directory.ServeHTTP(w, r)
}
