package api

import (
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/botauth"
)

// Paths that more than the table knows.
const (
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	metricsPath = "/metrics"
	keysPath    = botauth.DirectoryPath
)

// Limits of bodies, in bytes. What streams in has a limit by the line.
const (
	noBody      = 4 << 10
	smallBody   = 64 << 10
	projectBody = 1 << 20
	streamed    = -1
)

// A route is a line of the table: what the API can be asked, who may, and what
// comes back. The OpenAPI document is made of it.
type route struct {
	method, path string
	name         string // operationId
	role         Role
	summary      string
	about        string
	params       []param
	limit        int64    // of the body, in bytes; streamed: none
	types        []string // of the body; none: there is none
	takesOf      any      // a value of the type that the body is, if it is JSON
	gives        any      // a value of the type of the answer; nil: none
	as           string   // its content type; empty: application/json
	created      bool     // 201 instead of 204
	handle       func(*Server, http.ResponseWriter, *http.Request) (reply, error)
}

// A param is a parameter of a query.
type param struct {
	name  string
	about string
	is    string // its type in JSON Schema
	one   []string
}

var (
	yamlTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/plain", "application/octet-stream"}
	jsonTypes = []string{"application/json"}
	urlTypes  = []string{"application/x-ndjson", "application/jsonl", "application/json", "text/plain"}
	formTypes = []string{"application/x-www-form-urlencoded"}

	offset = param{name: "offset", is: "integer", about: "how many to leave out"}
	limit  = param{name: "limit", is: "integer", about: "how many at most"}
)

const (
	projects = "/api/v1/projects"
	project  = projects + "/{project}"
	brakes   = "/api/v1/brakes"
)

// routes is all that the API can be asked. A call that may change something is
// one of another method than GET.
var routes = []route{
	{method: "GET", path: projects, name: "projects", role: Read, summary: "All projects", gives: []Project(nil), handle: (*Server).listProjects},
	{method: "GET", path: project, name: "project", role: Read, summary: "A project, or its file",
		about:  "With Accept: application/yaml, the project file, for which the role operate is needed: it may hold passwords of proxies.",
		params: nil, gives: Project{}, handle: (*Server).getProject},
	{method: "PUT", path: project, name: "putProject", role: Operate, summary: "Make a project, or change it",
		about: "A file that makes no sense is refused with 422, says where, and changes nothing. A change loses no visit.",
		limit: projectBody, types: yamlTypes, created: true, handle: (*Server).putProject},
	{method: "DELETE", path: project, name: "deleteProject", role: Operate, summary: "Stop a project, and move its file and state aside",
		limit: noBody, handle: (*Server).deleteProject},
	{method: "POST", path: project + "/start", name: "start", role: Operate, summary: "Crawl", limit: noBody, gives: Project{}, handle: do(Start)},
	{method: "POST", path: project + "/pause", name: "pause", role: Operate, summary: "Begin no visit; those in hand are finished", limit: noBody, gives: Project{}, handle: do(Pause)},
	{method: "POST", path: project + "/resume", name: "resume", role: Operate, summary: "Crawl on after a pause", limit: noBody, gives: Project{}, handle: do(Resume)},
	{method: "POST", path: project + "/stop", name: "stop", role: Operate, summary: "Pause, and close the state", limit: noBody, gives: Project{}, handle: do(Stop)},
	{method: "POST", path: project + "/urls", name: "addURLs", role: Operate, summary: "Queue URLs, as many as you like",
		about: "JSON Lines (a URL in quotes, or an object with url, depth and referrer), one JSON array of such, or plain text with a URL a line. " +
			"The body is read as fast as the store takes it. What was taken before a call breaks off stays taken.",
		limit: streamed, types: urlTypes, gives: Intake{}, handle: (*Server).addURLs},
	{method: "GET", path: project + "/hosts", name: "hosts", role: Read, summary: "The hosts of a project",
		params: []param{
			{name: "q", is: "string", about: "part of the name"},
			{name: "state", is: "string", one: hostStates, about: "only hosts in it"},
			{name: "sort", is: "string", one: hostSorts, about: "by what; without, what matters most comes first"},
			{name: "order", is: "string", one: []string{"asc", "desc"}, about: "asc if it is not said"},
			offset, limit},
		gives: HostPage{}, handle: (*Server).listHosts},
	{method: "GET", path: project + "/hosts/{host}", name: "host", role: Read, summary: "All that is known of a host", gives: HostDetail{}, handle: (*Server).getHost},
	{method: "PUT", path: project + "/hosts/{host}/brake", name: "brakeHost", role: Operate, summary: "Stop or slow a host, in all projects",
		about: "At once, visits in hand included, and durable. The reason may be in the body or in the header Decorum-Reason.",
		limit: smallBody, types: jsonTypes, takesOf: BrakeOrder{}, gives: Brake{}, handle: (*Server).setBrake},
	{method: "DELETE", path: project + "/hosts/{host}/brake", name: "liftHostBrake", role: Operate, summary: "Take the brake off a host", limit: noBody, handle: (*Server).liftBrake},
	{method: "GET", path: project + "/explain", name: "explain", role: Read, summary: "All that a crawl makes of a URL",
		params: []param{{name: "url", is: "string", about: "as it was found; compulsory"}}, gives: Explanation{}, handle: (*Server).explain},
	{method: "GET", path: project + "/report", name: "report", role: Read, summary: "How a crawl stands",
		params: []param{{name: "host", is: "string", about: "of this host only"},
			{name: "limit", is: "integer", about: "hosts, and rules, at most; 0: all; 100 if it is not said"}},
		gives: Report{}, handle: (*Server).report},
	{method: "GET", path: project + "/robots/{origin}", name: "robots", role: Read, summary: "The robots.txt of an origin, as it was fetched",
		about: "The origin is percent-encoded, as https%3A%2F%2Fexample.com.",
		params: []param{{name: "version", is: "string", about: "SHA-256 of an older one"},
			{name: "against", is: "string", about: "SHA-256 of another one, to which diff compares it"}}, gives: RobotsFile{}, handle: (*Server).robots},
	{method: "GET", path: project + "/visits", name: "visits", role: Read, summary: "The visits in hand", gives: []LiveVisit(nil), handle: (*Server).visits},
	{method: "GET", path: project + "/throughput", name: "throughput", role: Read, summary: "What a project did lately",
		params: []param{{name: "coarse", is: "boolean", about: "a sample a minute for the last day, instead of one a second for the last minutes"}},
		gives:  []Sample(nil), handle: (*Server).throughput},
	{method: "GET", path: project + "/events", name: "projectEvents", role: Read, summary: "What happens in a project, as it happens", gives: Event{}, as: eventStream, handle: (*Server).events},
	{method: "GET", path: "/api/v1/events", name: "events", role: Read, summary: "What happens, as it happens",
		about: "Server-sent events. Each is a JSON object, event names its type. They are not kept: who comes back goes on with what happens then.",
		gives: Event{}, as: eventStream, handle: (*Server).events},
	{method: "GET", path: brakes, name: "brakes", role: Read, summary: "The brakes that are on", gives: []Brake(nil), handle: (*Server).listBrakes},
	{method: "PUT", path: brakes + "/{host}", name: "setBrake", role: Operate, summary: "Stop or slow a host, or a domain, in all projects",
		limit: smallBody, types: jsonTypes, takesOf: BrakeOrder{}, gives: Brake{}, handle: (*Server).setBrake},
	{method: "DELETE", path: brakes + "/{host}", name: "liftBrake", role: Operate, summary: "Take a brake off", limit: noBody, handle: (*Server).liftBrake},
	{method: "POST", path: "/api/v1/reload", name: "reload", role: Operate, summary: "Read all project files again", limit: noBody, gives: []Reloaded(nil), handle: (*Server).reload},
	{method: "GET", path: "/api/v1/audit", name: "audit", role: Read, summary: "Who changed what, the newest first",
		params: []param{{name: "before", is: "integer", about: "only entries with a lower seq"}, limit}, gives: AuditPage{}, handle: (*Server).audit},
	{method: "GET", path: "/api/v1/about", name: "about", role: Open, summary: "What site owners may know", gives: About{}, handle: (*Server).about},
	{method: "GET", path: keysPath, name: "keys", role: Open, summary: "The keys that requests of the crawls are signed with",
		about: "Of the host that is asked. Each key signs the answer (RFC 9421).", gives: botauth.KeySet{}, as: botauth.DirectoryType, handle: (*Server).keys},
	{method: "POST", path: loginPath, name: "login", role: Open, summary: "Trade a token for a session, as browsers do",
		limit: noBody, types: formTypes, handle: (*Server).login},
	{method: "POST", path: "/logout", name: "logout", role: Open, summary: "End the session", limit: noBody, types: formTypes, handle: (*Server).logout},
	{method: "GET", path: healthPath, name: "health", role: Open, summary: "Is the process alive?", gives: Health{}, handle: (*Server).health},
	{method: "GET", path: readyPath, name: "ready", role: Open, summary: "Does every project run that should?",
		about: "503 if not: a project has failed, waits for room on the disk, or waits for the servers that keep its state. A caller with a token gets the reasons.", gives: Health{}, handle: (*Server).ready},
	{method: "GET", path: metricsPath, name: "metrics", role: Read, summary: "Numbers for Prometheus", gives: "", as: "text/plain", handle: (*Server).metrics},
	{method: "GET", path: "/openapi.json", name: "openapi", role: Read, summary: "This document", gives: map[string]any(nil), handle: (*Server).openapi},
}

var (
	hostStates = []string{"due", "waiting", "held", "set aside", "resting", "done"}
	hostSorts  = []string{"host", "state", "queued", "due", "pace", "last_status", "robots_age", "failures", "requests"}
)

// Health is how the daemon is.
type Health struct {
	Status  string   `json:"status"`            // ok, or why not
	Reasons []string `json:"reasons,omitempty"` // each reason, for callers who may read
}
