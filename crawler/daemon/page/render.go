package page

import (
	"bytes"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A pageResult is a page that is about to be shown.
type pageResult struct {
	templateName string // of its template
	title        string
	status       int    // 0: 200
	redirectTo   string // instead of a page: where to go
	data         any
}

// A pageFunc makes the page that a request asks for.
type pageFunc func(*http.Request) (pageResult, error)

// A templateData is what every template is given.
type templateData struct {
	Title          string
	Section        string // of the navigation: the view's name
	Now            time.Time
	Viewer         api.Caller
	FlashMessage   string // what the last form did
	Path           string // with the query: where forms lead back to
	Version        string
	RefreshSeconds int // seconds after which a browser looks for what has changed; 0: never
	Data           any
}

// pageTemplates are the templates by name.
type pageTemplates map[string]*template.Template

// pageTemplateNames are the templates that are pages; the others are parts of them.
var pageTemplateNames = []string{"projects", "project", "blocked", "urls", "file", "new", "host", "brakes", "audit", "bot", "login", "problem"}

// CanOperate reports whether the viewer may change something.
func (f templateData) CanOperate() bool { return f.Viewer.Role.Allows(api.RoleOperate) }

// loadTemplates parses the templates. A key that a map does not have is an error of
// their execution, as a field that a struct does not have is.
func loadTemplates(a assets) pageTemplates {
	parts := template.Must(template.New("").Option("missingkey=error").Funcs(templateFuncs(a)).ParseFS(embeddedFiles, "templates/parts/*.html"))
	templates := pageTemplates{}
	for _, name := range pageTemplateNames {
		t := template.Must(parts.Clone())
		templates[name] = template.Must(t.ParseFS(embeddedFiles, "templates/"+name+".html"))
	}
	return templates
}

// refreshSeconds are the views that change by themselves, in seconds.
var refreshSeconds = map[string]int{"projects": 2, "project": 2, "host": 5, "brakes": 5}

// pageHandler shows what is looked at, or why it cannot be.
func (s *webUI) pageHandler(build pageFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := build(r)
		if err != nil {
			v = problemView(err)
		}
		s.renderPage(w, r, v)
	})
}

// renderPage writes a view.
func (s *webUI) renderPage(w http.ResponseWriter, r *http.Request, v pageResult) {
	if v.redirectTo != "" {
		http.Redirect(w, r, v.redirectTo, http.StatusSeeOther)
		return
	}
	f := templateData{Title: v.title, Section: v.templateName, Now: time.Now(), Viewer: api.CallerFromContext(r.Context()), Path: r.URL.RequestURI(),
		Version: s.daemon.CrawlerIdentities().Version, RefreshSeconds: refreshSeconds[v.templateName], Data: v.data}
	f.FlashMessage = takeFlashMessage(w, r)
	var b bytes.Buffer
	if err := s.templates[v.templateName].ExecuteTemplate(&b, "page", f); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	w.Write(replaceDeceptiveChars(b.Bytes())) // a browser that has gone away is nobody's error
}

// replaceDeceptiveChars replaces what a stranger could make text look like another with:
// control characters, and those that turn the direction of writing. html/template
// has made sure that nothing is more than text.
func replaceDeceptiveChars(page []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, page)
}

// flashCookie holds what the last form did until the next page says it.
const flashCookie = "decorum-said"

func setFlashMessage(w http.ResponseWriter, r *http.Request, message string) {
	const maxRunes = 1000 // a cookie has room for 4 KiB
	if text := []rune(message); len(text) > maxRunes {
		message = string(text[:maxRunes]) + "…"
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(message)), Path: "/",
		MaxAge: 60, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
}

// takeFlashMessage returns what is to be said, and makes sure that it is said once. A
// refresh in the background says nothing.
func takeFlashMessage(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(flashCookie)
	if err != nil || r.Header.Get(liveRefreshHeader) != "" {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	message, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return ""
	}
	return string(message)
}

// liveRefreshHeader is sent by the page's script when it looks for what has changed.
const liveRefreshHeader = "Decorum-Live"
