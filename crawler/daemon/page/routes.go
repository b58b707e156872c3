package page

import (
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A webUI holds what the handlers of the page share.
type webUI struct {
	daemon    api.Daemon
	audit     *api.AuditLog
	assets    assets
	templates renderer
}

// New returns the handler of the page of d, which shows the entries of audit. It must be mounted as
// api.ServerConfig.PageHandler: the api.Server checks the caller's role, passes the caller on in the
// request's context, and sets the headers that protect the page from other sites.
func New(d api.Daemon, audit *api.AuditLog) http.Handler {
	a := loadAssets()
	return newWebUIHandler(d, audit, a, loadTemplates(a))
}

// newWebUIHandler returns the handler of the page of d with the given assets and templates.
func newWebUIHandler(d api.Daemon, audit *api.AuditLog, a assets, v renderer) http.Handler {
	s := &webUI{daemon: d, audit: audit, assets: a, templates: v}
	mux := http.NewServeMux()
	mux.Handle("GET /assets/{file}", s.assets)
	for pattern, page := range map[string]pageFunc{
		"/{$}":                             s.projectsPage,
		"/new":                             s.projectCreationPage,
		"/projects/{project}":              s.projectTab("project", s.projectDashboard),
		"/projects/{project}/blocked":      s.projectTab("blocked", s.blockedURLs),
		"/projects/{project}/urls":         s.projectTab("urls", emptyAddURLsForm),
		"/projects/{project}/file":         s.projectFilePage,
		"/projects/{project}/explain":      s.redirectToExplanation,
		"/projects/{project}/hosts/{host}": s.hostPage,
		"/brakes":                          s.brakesPage,
		"/audit":                           s.auditPage,
		"/bot":                             s.botPage,
		"/login":                           s.loginPage,
	} {
		mux.Handle("GET "+pattern, s.pageHandler(page))
	}
	for pattern, submit := range map[string]func(*http.Request) (formResult, error){
		"/new":                         s.createProject,
		"/reload":                      s.reloadProjects,
		"/projects/{project}/{action}": s.controlProject,
		"/projects/{project}/urls":     s.addURLs,
		"/projects/{project}/file":     s.saveProjectFile,
		"/projects/{project}/delete":   s.deleteProject,
		"/brakes":                      s.setBrake,
		"/brakes/lift":                 s.liftBrake,
	} {
		mux.Handle("POST "+pattern, s.formHandler(submit))
	}
	mux.HandleFunc("GET /projects/{project}/robots.txt", s.serveRawRobots)
	mux.Handle("/", s.pageHandler(func(*http.Request) (pageResult, error) {
		return pageResult{}, api.NotFound("page not found")
	}))
	return mux
}
