package api

import (
	"net/http"
	"strings"
)

// AboutBot is the page that site owners find behind a crawler's User-Agent, and
// nothing else of a page: it is for anybody to see.
func AboutBot(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		switch path := r.URL.Path; {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			writeProblem(w, problem(http.StatusMethodNotAllowed, "%s is for reading", path))
		case path == "/":
			http.Redirect(w, r, botPath, http.StatusFound)
		case path == botPath, strings.HasPrefix(path, assetsPath):
			page.ServeHTTP(w, r)
		default:
			writeProblem(w, NotFound("there is nothing at %s", path))
		}
	})
}
