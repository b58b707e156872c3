package page

import (
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A webUI is the page as a handler: what its routes share.
type webUI struct {
	daemon    api.Daemon
	audit     *api.AuditLog
	assets    assets
	templates pageTemplates
}

// New returns the page over d, for the server of package api to mount: it has
// checked who may see what, passes on who that is, and sets the headers that keep
// other sites out. The audit is shown.
func New(d api.Daemon, audit *api.AuditLog) http.Handler {
	a := loadAssets()
	return newWebUIHandler(d, audit, a, loadTemplates(a))
}

// newWebUIHandler returns the page over d with these assets and templates.
func newWebUIHandler(d api.Daemon, audit *api.AuditLog, a assets, v pageTemplates) http.Handler {
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
	mux.Handle("/", s.pageHandler(func(*http.Request) (pageResult, error) { return pageResult{}, api.NotFound("there is no such page") }))
	return mux
}
