package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// Paths that more than the table knows.
const (
	healthPath       = "/healthz"
	readyPath        = "/readyz"
	metricsPath      = "/metrics"
	keyDirectoryPath = botauth.DirectoryPath
)

// Limits of bodies, in bytes. What streams in has a limit by the line.
const (
	maxEmptyBodyBytes   = 4 << 10
	maxSmallBodyBytes   = 64 << 10
	maxProjectFileBytes = 1 << 20
	unlimitedBody       = -1
)

// A route is a line of the table: what the API can be asked, who may, and what
// comes back. The OpenAPI document is made of it.
type route struct {
	method, path          string
	operationID           string // operationId
	role                  Role
	summary               string
	description           string
	queryParams           []queryParam
	maxBodyBytes          int64    // of the body, in bytes; streamed: none
	requestMediaTypes     []string // of the body; none: there is none
	requestBodyPrototype  any      // a value of the type that the body is, if it is JSON
	responseBodyPrototype any      // a value of the type of the answer; nil: none
	responseMediaType     string   // its content type; empty: application/json
	mayCreate             bool     // 201 instead of 204
	handle                func(*Server, http.ResponseWriter, *http.Request) (reply, error)
	handleCrawl           func(*inspectorHandlers, Inspector, http.ResponseWriter, *http.Request) (reply, error) // in the place of handle
}

// A queryParam is a parameter of a query.
type queryParam struct {
	name        string
	description string
	jsonType    string   // its type in JSON Schema
	enum        []string // the values that it can have; nil: any of its type
	maxValue    int      // of an integer
}

var (
	yamlTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/plain", "application/octet-stream"}
	jsonTypes = []string{"application/json"}
	urlTypes  = []string{jsonLinesType, "application/jsonl", "application/json", "text/plain"}
	formTypes = []string{"application/x-www-form-urlencoded"}

	offsetParam = queryParam{name: "offset", jsonType: "integer", maxValue: 1 << 40, description: "how many to leave out"}
	limitParam  = queryParam{name: "limit", jsonType: "integer", maxValue: 1000, description: "how many at most"}
)

const (
	projectsPath       = "/api/v1/projects"
	projectPathPattern = projectsPath + "/{project}"
	brakesPath         = "/api/v1/brakes"
)

// routes is all that the API can be asked. A call that may change something is
// one of another method than GET.
var routes = []route{
	{method: "GET", path: projectsPath, operationID: "projects", role: RoleRead, summary: "All projects", responseBodyPrototype: []Project(nil), handle: (*Server).listProjects},
	{method: "GET", path: projectPathPattern, operationID: "project", role: RoleRead, summary: "A project, or its file",
		description: "With Accept: application/yaml, the project file, for which the role operate is needed: it may hold passwords of proxies.",
		queryParams: nil, responseBodyPrototype: Project{}, handle: (*Server).getProject},
	{method: "PUT", path: projectPathPattern, operationID: "putProject", role: RoleOperate, summary: "Make a project, or change it",
		description:  "A file that makes no sense is refused with 422, says where, and changes nothing. A change loses no visit.",
		maxBodyBytes: maxProjectFileBytes, requestMediaTypes: yamlTypes, mayCreate: true, handle: (*Server).putProject},
	{method: "DELETE", path: projectPathPattern, operationID: "deleteProject", role: RoleOperate, summary: "Stop a project, and move its file and state aside",
		maxBodyBytes: maxEmptyBodyBytes, handle: (*Server).deleteProject},
	{method: "POST", path: projectPathPattern + "/start", operationID: "start", role: RoleOperate, summary: "Crawl", maxBodyBytes: maxEmptyBodyBytes, responseBodyPrototype: Project{}, handle: controlHandler(ActionStart)},
	{method: "POST", path: projectPathPattern + "/pause", operationID: "pause", role: RoleOperate, summary: "Begin no visit; those in hand are finished", maxBodyBytes: maxEmptyBodyBytes, responseBodyPrototype: Project{}, handle: controlHandler(ActionPause)},
	{method: "POST", path: projectPathPattern + "/resume", operationID: "resume", role: RoleOperate, summary: "Crawl on after a pause", maxBodyBytes: maxEmptyBodyBytes, responseBodyPrototype: Project{}, handle: controlHandler(ActionResume)},
	{method: "POST", path: projectPathPattern + "/stop", operationID: "stop", role: RoleOperate, summary: "Pause, and close the state", maxBodyBytes: maxEmptyBodyBytes, responseBodyPrototype: Project{}, handle: controlHandler(ActionStop)},
	{method: "POST", path: projectPathPattern + "/urls", operationID: "addURLs", role: RoleOperate, summary: "Queue URLs, as many as you like",
		description: "JSON Lines (a URL in quotes, or an object with url, depth and referrer), one JSON array of such, or plain text with a URL a line. " +
			"The body is read as fast as the store takes it. What was taken before a call breaks off stays taken.",
		maxBodyBytes: unlimitedBody, requestMediaTypes: urlTypes, responseBodyPrototype: AddURLsResult{}, handleCrawl: (*inspectorHandlers).addURLs},
	{method: "GET", path: projectPathPattern + "/hosts", operationID: "hosts", role: RoleRead, summary: "The hosts of a project",
		queryParams: []queryParam{
			{name: "q", jsonType: "string", description: "part of the name"},
			{name: "state", jsonType: "string", enum: hostStates, description: "only hosts in it"},
			{name: "sort", jsonType: "string", enum: hostSortKeys, description: "by what; without, what matters most comes first"},
			{name: "order", jsonType: "string", enum: []string{"asc", "desc"}, description: "asc if it is not said"},
			offsetParam, limitParam},
		responseBodyPrototype: HostListPage{}, handle: (*Server).listHosts},
	{method: "GET", path: projectPathPattern + "/hosts/{host}", operationID: "host", role: RoleRead, summary: "All that is known of a host", responseBodyPrototype: HostDetail{}, handle: (*Server).getHost},
	{method: "PUT", path: projectPathPattern + "/hosts/{host}/brake", operationID: "brakeHost", role: RoleOperate, summary: "Stop or slow a host, in all projects",
		description:  "At once, visits in hand included, and durable. The reason may be in the body or in the header Decorum-Reason.",
		maxBodyBytes: maxSmallBodyBytes, requestMediaTypes: jsonTypes, requestBodyPrototype: BrakeRequest{}, responseBodyPrototype: Brake{}, handle: (*Server).setBrake},
	{method: "DELETE", path: projectPathPattern + "/hosts/{host}/brake", operationID: "liftHostBrake", role: RoleOperate, summary: "Take the brake off a host", maxBodyBytes: maxEmptyBodyBytes, handle: (*Server).liftBrake},
	{method: "GET", path: projectPathPattern + "/explain", operationID: "explain", role: RoleRead, summary: "All that a crawl makes of a URL",
		queryParams: []queryParam{{name: "url", jsonType: "string", description: "as it was found; compulsory"}}, responseBodyPrototype: URLExplanation{}, handleCrawl: (*inspectorHandlers).explainURL},
	{method: "GET", path: projectPathPattern + "/report", operationID: "report", role: RoleRead, summary: "How a crawl stands",
		description: "With Accept: application/x-ndjson, the totals and then each host, a line each.",
		queryParams: []queryParam{{name: "host", jsonType: "string", description: "of this host only"},
			{name: "limit", jsonType: "integer", maxValue: 1 << 40,
				description: "hosts, and rules, at most; 0: all; 100 if it is not said"}},
		responseBodyPrototype: CrawlReport{}, handleCrawl: (*inspectorHandlers).getReport},
	{method: "GET", path: projectPathPattern + "/frontier", operationID: "frontier", role: RoleRead, summary: "How much a crawl's frontier holds",
		responseBodyPrototype: FrontierStats{}, handleCrawl: (*inspectorHandlers).getFrontierStats},
	{method: "GET", path: projectPathPattern + "/frontier/urls", operationID: "frontierURLs", role: RoleRead, summary: "The URLs of a crawl's frontier",
		description: "JSON Lines, of each origin in the order in which they would be visited. context and body are for the role operate.",
		queryParams: []queryParam{{name: "host", jsonType: "string", description: "of this host only"},
			{name: "origin", jsonType: "string", description: "of this origin only, as https://example.com"},
			{name: "state", jsonType: "string", enum: frontierURLStates, description: "only URLs in it"},
			{name: "limit", jsonType: "integer", maxValue: 1 << 40, description: "at most so many; 0: all"}},
		responseBodyPrototype: FrontierURL{}, responseMediaType: jsonLinesType, handleCrawl: (*inspectorHandlers).listFrontierURLs},
	{method: "GET", path: projectPathPattern + "/ledger", operationID: "ledger", role: RoleRead, summary: "What permitted each request",
		description:           "JSON Lines: the requests, answers and refusals that the ledger has, the oldest first, and where runs begin.",
		queryParams:           []queryParam{{name: "url", jsonType: "string", description: "of this URL only"}, {name: "host", jsonType: "string", description: "of this host only"}},
		responseBodyPrototype: ledger.Record{}, responseMediaType: jsonLinesType, handleCrawl: (*inspectorHandlers).listLedgerRecords},
	{method: "GET", path: projectPathPattern + "/robots/{origin}", operationID: "robots", role: RoleRead, summary: "The robots.txt of an origin, as it was fetched",
		description: "The origin is percent-encoded, as https%3A%2F%2Fexample.com.",
		queryParams: []queryParam{{name: "version", jsonType: "string", description: "SHA-256 of an older one"},
			{name: "against", jsonType: "string", description: "SHA-256 of another one, to which diff compares it"}}, responseBodyPrototype: RobotsFile{}, handle: (*Server).getRobotsFile},
	{method: "GET", path: projectPathPattern + "/visits", operationID: "visits", role: RoleRead, summary: "The visits in hand", responseBodyPrototype: []ActiveVisit(nil), handle: (*Server).listActiveVisits},
	{method: "GET", path: projectPathPattern + "/throughput", operationID: "throughput", role: RoleRead, summary: "What a project did lately",
		queryParams:           []queryParam{{name: "coarse", jsonType: "boolean", description: "a sample a minute for the last day, instead of one a second for the last minutes"}},
		responseBodyPrototype: []ThroughputSample(nil), handle: (*Server).getThroughput},
	{method: "GET", path: projectPathPattern + "/events", operationID: "projectEvents", role: RoleRead, summary: "What happens in a project, as it happens", responseBodyPrototype: Event{}, responseMediaType: eventStreamType, handle: (*Server).streamEvents},
	{method: "GET", path: "/api/v1/events", operationID: "events", role: RoleRead, summary: "What happens, as it happens",
		description:           "Server-sent events. Each is a JSON object, event names its type. They are not kept: who comes back goes on with what happens then.",
		responseBodyPrototype: Event{}, responseMediaType: eventStreamType, handle: (*Server).streamEvents},
	{method: "GET", path: brakesPath, operationID: "brakes", role: RoleRead, summary: "The brakes that are on", responseBodyPrototype: []Brake(nil), handle: (*Server).listBrakes},
	{method: "PUT", path: brakesPath + "/{host}", operationID: "setBrake", role: RoleOperate, summary: "Stop or slow a host, or a domain, in all projects",
		maxBodyBytes: maxSmallBodyBytes, requestMediaTypes: jsonTypes, requestBodyPrototype: BrakeRequest{}, responseBodyPrototype: Brake{}, handle: (*Server).setBrake},
	{method: "DELETE", path: brakesPath + "/{host}", operationID: "liftBrake", role: RoleOperate, summary: "Take a brake off", maxBodyBytes: maxEmptyBodyBytes, handle: (*Server).liftBrake},
	{method: "POST", path: "/api/v1/reload", operationID: "reload", role: RoleOperate, summary: "Read all project files again", maxBodyBytes: maxEmptyBodyBytes, responseBodyPrototype: []ProjectReloadResult(nil), handle: (*Server).reloadProjects},
	{method: "GET", path: "/api/v1/audit", operationID: "audit", role: RoleRead, summary: "Who changed what, the newest first",
		queryParams: []queryParam{
			{name: "before", jsonType: "integer", maxValue: 1 << 60, description: "only entries with a lower seq"}, limitParam},
		responseBodyPrototype: AuditPage{}, handle: (*Server).listAuditEntries},
	{method: "GET", path: "/api/v1/about", operationID: "about", role: RolePublic, summary: "What site owners may know", responseBodyPrototype: CrawlerIdentities{}, handle: (*Server).getAbout},
	{method: "GET", path: keyDirectoryPath, operationID: "keys", role: RolePublic, summary: "The keys that requests of the crawls are signed with",
		description: "Of the host that is asked. Each key signs the answer (RFC 9421).", responseBodyPrototype: botauth.KeySet{}, responseMediaType: botauth.DirectoryMediaType, handle: (*Server).getSigningKeyDirectory},
	{method: "POST", path: loginPath, operationID: "login", role: RolePublic, summary: "Trade a token for a session, as browsers do",
		maxBodyBytes: maxEmptyBodyBytes, requestMediaTypes: formTypes, handle: (*Server).login},
	{method: "POST", path: "/logout", operationID: "logout", role: RolePublic, summary: "End the session", maxBodyBytes: maxEmptyBodyBytes, requestMediaTypes: formTypes, handle: (*Server).logout},
	{method: "GET", path: healthPath, operationID: "health", role: RolePublic, summary: "Is the process alive?", responseBodyPrototype: Health{}, handle: (*Server).getHealth},
	{method: "GET", path: readyPath, operationID: "ready", role: RolePublic, summary: "Does every project run that should?",
		description: "503 if not: a project has failed, waits for room on the disk, or waits for the servers that keep its state. A caller with a token gets the reasons.", responseBodyPrototype: Health{}, handle: (*Server).getReadiness},
	{method: "GET", path: metricsPath, operationID: "metrics", role: RoleRead, summary: "Numbers for Prometheus", responseBodyPrototype: "", responseMediaType: "text/plain", handle: (*Server).getMetrics},
	{method: "GET", path: "/openapi.json", operationID: "openapi", role: RoleRead, summary: "This document", responseBodyPrototype: map[string]any(nil), handle: (*Server).getOpenAPI},
}

var (
	hostStates        = []string{"due", "waiting", "held", "set aside", "resting", "done"}
	frontierURLStates = []string{"queued", "resting", "parked"}
	hostSortKeys      = []string{"host", "state", "queued", "due", "pace", "last_status", "robots_age", "failures", "requests"}
)

// Health is how the daemon is.
type Health struct {
	Status  string   `json:"status"`            // ok, or why not
	Reasons []string `json:"reasons,omitempty"` // each reason, for callers who may read
}

// openAPIJSON is the OpenAPI document (3.1) of the routes. openapi_generate_test.go makes it:
//
//	go test ./crawler/daemon/api -run TestOpenAPIDocument -update
//
//go:embed openapi.json
var openAPIJSON []byte

// openAPIVersion is the version that openapi.json has.
const openAPIVersion = "(the program's version)"

// openAPIDocument returns the OpenAPI document of a program of this version.
func openAPIDocument(version string) []byte {
	old, _ := json.Marshal(openAPIVersion)
	v, _ := json.Marshal(version)
	return bytes.Replace(openAPIJSON, old, v, 1)
}
