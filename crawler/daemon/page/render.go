package page

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/internal/escapedhtml"
)

// A pageResult is a page before it is rendered, or a redirect.
type pageResult struct {
	templateName string // one of pageTemplateNames
	title        string
	status       int    // 0: 200
	redirectTo   string // the path to redirect to; empty: render the page
	data         any    // the view that the template shows
}

// A pageFunc returns the page for a request.
type pageFunc func(*http.Request) (pageResult, error)

// A templateData is the data of every template.
type templateData struct {
	Title          string
	Section        string // the template's name, which marks the current page in the navigation
	Now            time.Time
	Viewer         api.Caller
	FlashMessage   string // the message of the last form; empty: none
	Path           string // of the page, with its query; forms return to it
	Version        string // of decorum
	RefreshSeconds int    // how often the script fetches the page again; 0: never
	CanOperate     bool   // the viewer has the role operate
	Data           any    // pageResult.data
}

// A renderer writes a page to w: the template of that name of pageTemplateNames, executed with data.
type renderer interface {
	render(w io.Writer, name string, data templateData) error
}

// escapedTemplates holds the templates of each page, by the name of the page.
type escapedTemplates map[string]escapedhtml.Templates

func (t escapedTemplates) render(w io.Writer, name string, data templateData) error {
	return t[name].Execute(w, "page", data)
}

// pageTemplateNames holds the templates that are pages. The files in templates/parts are parts of
// all of them.
var pageTemplateNames = []string{"projects", "project", "blocked", "urls", "file", "new", "host", "brakes",
	"audit", "bot", "login", "problem"}

// loadTemplates parses the escaped templates.
func loadTemplates(a assets) escapedTemplates {
	templates := escapedTemplates{}
	for _, name := range pageTemplateNames {
		t, err := escapedhtml.Parse(templateFuncs(a), readEmbedded("escaped/parts.html"),
			readEmbedded("escaped/"+name+".html"))
		if err != nil {
			panic(err) // the file was generated wrong
		}
		templates[name] = t
	}
	return templates
}

// refreshSeconds holds how often the pages that change by themselves are fetched again.
var refreshSeconds = map[string]int{"projects": 2, "project": 2, "host": 5, "brakes": 5}

// pageHandler returns a handler that renders the page of build, or its error.
func (s *webUI) pageHandler(build pageFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := build(r)
		if err != nil {
			v = problemView(err)
		}
		s.renderPage(w, r, v)
	})
}

// renderPage writes a page, or redirects.
func (s *webUI) renderPage(w http.ResponseWriter, r *http.Request, v pageResult) {
	if v.redirectTo != "" {
		http.Redirect(w, r, v.redirectTo, http.StatusSeeOther)
		return
	}
	viewer := api.CallerFromContext(r.Context())
	f := templateData{Title: v.title, Section: v.templateName, Now: time.Now(), Viewer: viewer,
		CanOperate: viewer.Role.Allows(api.RoleOperate), Path: r.URL.RequestURI(),
		Version: s.daemon.CrawlerIdentities().Version, RefreshSeconds: refreshSeconds[v.templateName], Data: v.data}
	f.FlashMessage = takeFlashMessage(w, r)
	// Render into memory first, so that an error is answered with its own status.
	var b bytes.Buffer
	if err := s.templates.render(&b, v.templateName, f); err != nil {
		http.Error(w, "cannot render the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	w.Write(replaceDeceptiveChars(b.Bytes())) // it fails only if the browser has gone
}

// replaceDeceptiveChars replaces the characters by which a stranger's text could look like another:
// control characters, and characters that change the direction of writing. The templates have escaped
// the text already.
func replaceDeceptiveChars(page []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, page)
}

// flashCookie is the cookie that carries the message of a form to the next page.
const flashCookie = "decorum-said"

// setFlashMessage sends a message, cut to 1000 characters, to the next page.
func setFlashMessage(w http.ResponseWriter, r *http.Request, message string) {
	const maxRunes = 1000 // a cookie has room for 4 KiB
	if text := []rune(message); len(text) > maxRunes {
		message = string(text[:maxRunes]) + "…"
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(message)),
		Path:   "/",
		MaxAge: 60, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
}

// takeFlashMessage returns the message of the last form, and deletes it, so that it is shown once.
// A refresh in the background leaves it for the next page.
func takeFlashMessage(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(flashCookie)
	if err != nil || r.Header.Get(liveRefreshHeader) != "" {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	message, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return ""
	}
	return string(message)
}

// liveRefreshHeader is the header that the page's script sends when it fetches the page again.
const liveRefreshHeader = "Decorum-Live"
