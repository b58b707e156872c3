package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"

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
	for pattern, page := range map[string]pageBuilder{
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
	mux.Handle("/", s.pageHandler(func(*http.Request) (pageView, error) { return pageView{}, api.NotFound("there is no such page") }))
	return mux
}

//go:embed templates assets
var embeddedFiles embed.FS

// assets are the files that pages load, each under a name with its hash, so that
// browsers may keep them for good.
type assets struct {
	byURL     map[string]asset
	urlByName map[string]string // by the name of the file
}

type asset struct {
	mediaType string
	body      []byte
}

// mediaTypes are those of the assets: the machine may know others.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func loadAssets() assets {
	a := assets{map[string]asset{}, map[string]string{}}
	names, err := fs.Glob(embeddedFiles, "assets/*")
	if err != nil {
		panic(err) // the pattern is well-formed
	}
	for _, name := range names {
		body, err := embeddedFiles.ReadFile(name)
		if err != nil {
			panic(err) // it is in the binary
		}
		sum := sha256.Sum256(body)
		file, ext := path.Base(name), path.Ext(name)
		url := "/assets/" + file[:len(file)-len(ext)] + "-" + hex.EncodeToString(sum[:6]) + ext
		a.urlByName[file] = url
		a.byURL[url] = asset{mediaTypes[ext], body}
	}
	return a
}

// ServeHTTP serves an asset.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.byURL[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", f.mediaType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Write(f.body) // a browser that has gone away is nobody's error
}
