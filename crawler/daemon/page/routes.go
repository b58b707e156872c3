package page

import (
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A site is the page as a handler: what its routes share.
type site struct {
	daemon api.Daemon
	log    *api.Audit
	assets assets
	views  views
}

// New returns the page over d, for the server of package api to mount: it has
// checked who may see what, passes on who that is, and sets the headers that keep
// other sites out. The audit is shown.
func New(d api.Daemon, audit *api.Audit) http.Handler {
	a := loadAssets()
	return newPage(d, audit, a, loadViews(a))
}

// newPage returns the page over d with these assets and templates.
func newPage(d api.Daemon, audit *api.Audit, a assets, v views) http.Handler {
	s := &site{daemon: d, log: audit, assets: a, views: v}
	mux := http.NewServeMux()
	mux.Handle("GET /assets/{file}", s.assets)
	for pattern, look := range s.looks() {
		mux.Handle("GET "+pattern, s.look(look))
	}
	for pattern, act := range s.acts() {
		mux.Handle("POST "+pattern, s.act(act))
	}
	mux.HandleFunc("GET /projects/{project}/robots.txt", s.rawRobots)
	mux.Handle("/", s.look(func(*http.Request) (view, error) { return view{}, api.NotFound("there is no such page") }))
	return mux
}

// looks are the pages.
func (s *site) looks() map[string]func(*http.Request) (view, error) {
	return map[string]func(*http.Request) (view, error){
		"/{$}":                             s.projects,
		"/new":                             s.newProject,
		"/projects/{project}":              s.project,
		"/projects/{project}/blocked":      s.blocked,
		"/projects/{project}/urls":         s.urls,
		"/projects/{project}/file":         s.file,
		"/projects/{project}/explain":      s.explain,
		"/projects/{project}/hosts/{host}": s.host,
		"/brakes":                          s.brakes,
		"/audit":                           s.audit,
		"/bot":                             s.bot,
		"/login":                           s.login,
	}
}

// acts are what forms do.
func (s *site) acts() map[string]func(*http.Request) (done, error) {
	return map[string]func(*http.Request) (done, error){
		"/new":                         s.createProject,
		"/reload":                      s.reload,
		"/projects/{project}/{action}": s.do,
		"/projects/{project}/urls":     s.addURLs,
		"/projects/{project}/file":     s.saveFile,
		"/projects/{project}/delete":   s.deleteProject,
		"/brakes":                      s.setBrake,
		"/brakes/lift":                 s.liftBrake,
	}
}
