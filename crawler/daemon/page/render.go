package page

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A view is a page that is about to be shown.
type view struct {
	name   string // of its template
	title  string
	status int    // 0: 200
	to     string // instead of a page: where to go
	data   any
}

// A frame is what every template is given.
type frame struct {
	Title   string
	Section string // of the navigation: the view's name
	Now     time.Time
	Viewer  api.Caller
	Flash   string // what the last form did
	Path    string // with the query: where forms lead back to
	Version string
	Refresh int // seconds after which a browser looks for what has changed; 0: never
	Data    any
}

// views are the templates by name.
type views map[string]*template.Template

// viewNames are the templates that are pages; the others are parts of them.
var viewNames = []string{"projects", "project", "blocked", "urls", "file", "new", "host", "brakes", "audit", "bot", "login", "problem"}

// Operates reports whether the viewer may change something.
func (f frame) Operates() bool { return f.Viewer.Role.May(api.Operate) }

// loadViews parses the templates. A key that a map does not have is an error of
// their execution, as a field that a struct does not have is.
func loadViews(a assets) views {
	parts := template.Must(template.New("").Option("missingkey=error").Funcs(words(a)).ParseFS(files, "templates/parts/*.html"))
	vs := views{}
	for _, name := range viewNames {
		t := template.Must(parts.Clone())
		vs[name] = template.Must(t.ParseFS(files, "templates/"+name+".html"))
	}
	return vs
}

// refreshes are the views that change by themselves, in seconds.
var refreshes = map[string]int{"projects": 2, "project": 2, "host": 5, "brakes": 5}

// look shows what is looked at, or why it cannot be.
func (s *site) look(find func(*http.Request) (view, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := find(r)
		if err != nil {
			v = problemView(err)
		}
		s.show(w, r, v)
	})
}

// problemView is the page of an error.
func problemView(err error) view {
	p := problemOf(err)
	return view{name: "problem", title: p.Title, status: p.Status, data: refusal{p, "/"}}
}

// problemOf returns an error as the API tells it.
func problemOf(err error) *api.Problem {
	var p *api.Problem
	if errors.As(err, &p) {
		return p
	}
	return &api.Problem{Title: http.StatusText(http.StatusInternalServerError), Status: http.StatusInternalServerError, Detail: err.Error()}
}

// show writes a view.
func (s *site) show(w http.ResponseWriter, r *http.Request, v view) {
	if v.to != "" {
		http.Redirect(w, r, v.to, http.StatusSeeOther)
		return
	}
	f := frame{Title: v.title, Section: v.name, Now: time.Now(), Viewer: api.CallerOf(r.Context()), Path: r.URL.RequestURI(),
		Version: s.daemon.About().Version, Refresh: refreshes[v.name], Data: v.data}
	f.Flash = takeFlash(w, r)
	var b bytes.Buffer
	if err := s.views[v.name].ExecuteTemplate(&b, "page", f); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	w.Write(visible(b.Bytes())) // a browser that has gone away is nobody's error
}

// visible replaces what a stranger could make text look like another with:
// control characters, and those that turn the direction of writing. html/template
// has made sure that nothing is more than text.
func visible(page []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, page)
}
