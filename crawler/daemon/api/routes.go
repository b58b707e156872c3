package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// Paths that code outside the route table uses as well.
const (
	healthPath       = "/healthz"
	readyPath        = "/readyz"
	metricsPath      = "/metrics"
	keyDirectoryPath = botauth.DirectoryPath
)

// Limits of request bodies, in bytes. A body that is streamed has a limit for each line instead:
// maxLineBytes.
const (
	maxEmptyBodyBytes   = 4 << 10
	maxSmallBodyBytes   = 64 << 10
	maxProjectFileBytes = 1 << 20
	unlimitedBody       = -1
)

// A route is an entry of the table of routes: a call of the API, the role that it requires, and
// its answer. The OpenAPI document is generated from the routes.
type route struct {
	method, path          string
	operationID           string // operationId in the OpenAPI document
	role                  Role   // the role that a caller needs
	summary               string
	description           string
	queryParams           []queryParam
	maxBodyBytes          int64    // limit of the request body; unlimitedBody: it is streamed
	requestMediaTypes     []string // of the request body; nil: the call takes no body
	requestBodyPrototype  any      // a value of the type of a JSON request body
	responseBodyPrototype any      // a value of the type of the answer; nil: the answer has no body
	responseMediaType     string   // of the answer; empty: application/json
	mayCreate             bool     // the status may be 201 instead of 204
	// handle answers the call. Exactly one of handle and handleCrawl is set.
	handle func(*Server, http.ResponseWriter, *http.Request) (reply, error)
	// handleCrawl answers a call that the Inspector of the project in the path can answer. A
	// crawl in the foreground serves only these routes, and /healthz.
	handleCrawl func(*inspectorHandlers, Inspector, http.ResponseWriter, *http.Request) (reply, error)
}

// A queryParam is a parameter in the query of a call.
type queryParam struct {
	name        string
	description string
	jsonType    string   // its type in JSON Schema
	enum        []string // the values allowed; nil: any of its type
	maxValue    int      // the largest value of an integer
}

var (
	yamlTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/plain",
		"application/octet-stream"}
	jsonTypes = []string{"application/json"}
	urlTypes  = []string{jsonLinesType, "application/jsonl", "application/json", "text/plain"}
	formTypes = []string{"application/x-www-form-urlencoded"}

	offsetParam = queryParam{name: "offset", jsonType: "integer", maxValue: 1 << 40, description: "how many to skip"}
	limitParam  = queryParam{name: "limit", jsonType: "integer", maxValue: 1000,
		description: "how many to return at most"}
)

const (
	projectsPath       = "/api/v1/projects"
	projectPathPattern = projectsPath + "/{project}"
	brakesPath         = "/api/v1/brakes"
	reloadPath         = "/api/v1/reload"
	tokensPath         = "/api/v1/tokens"
)

// routes is the table of the API's routes. A route with the method GET changes nothing; every
// other route may, and is recorded in the audit.
var routes = []route{
	{method: "GET", path: projectsPath, operationID: "projects", role: RoleRead, summary: "All projects",
		responseBodyPrototype: []Project(nil), handle: (*Server).listProjects},
	{method: "GET", path: projectPathPattern, operationID: "project", role: RoleRead, summary: "A project, or its file",
		description: "With Accept: application/yaml, the project file. It needs the role operate, because it may " +
			"hold passwords of proxies.",
		queryParams: nil, responseBodyPrototype: Project{}, handle: (*Server).getProject},
	{method: "PUT", path: projectPathPattern, operationID: "putProject", role: RoleOperate,
		summary: "Create a project, or change it",
		description: "An invalid file is refused with 422, which names the position of the error, and changes " +
			"nothing. A change loses no visit.",
		maxBodyBytes: maxProjectFileBytes, requestMediaTypes: yamlTypes, mayCreate: true, handle: (*Server).putProject},
	{method: "DELETE", path: projectPathPattern, operationID: "deleteProject", role: RoleOperate,
		summary:      "Stop a project, and move its file and state to the deleted projects",
		maxBodyBytes: maxEmptyBodyBytes, handle: (*Server).deleteProject},
	{method: "POST", path: projectPathPattern + "/start", operationID: "start", role: RoleOperate,
		summary: "Start the crawl", maxBodyBytes: maxEmptyBodyBytes, responseBodyPrototype: Project{},
		handle: controlHandler(ActionStart)},
	{method: "POST", path: projectPathPattern + "/pause", operationID: "pause", role: RoleOperate,
		summary: "Start no new visit; visits in flight finish", maxBodyBytes: maxEmptyBodyBytes,
		responseBodyPrototype: Project{}, handle: controlHandler(ActionPause)},
	{method: "POST", path: projectPathPattern + "/resume", operationID: "resume", role: RoleOperate,
		summary: "Continue after a pause", maxBodyBytes: maxEmptyBodyBytes, responseBodyPrototype: Project{},
		handle: controlHandler(ActionResume)},
	{method: "POST", path: projectPathPattern + "/stop", operationID: "stop", role: RoleOperate,
		summary: "Pause, and close the state", maxBodyBytes: maxEmptyBodyBytes, responseBodyPrototype: Project{},
		handle: controlHandler(ActionStop)},
	{method: "POST", path: projectPathPattern + "/urls", operationID: "addURLs", role: RoleOperate,
		summary: "Queue any number of URLs",
		description: "JSON Lines (a URL in quotes, or an object with url, depth and referrer), one JSON array of " +
			"these, or plain text with a URL on each line. " +
			"The body is read as fast as the store accepts URLs. URLs that were accepted before a call breaks off " +
			"stay queued.",
		maxBodyBytes: unlimitedBody, requestMediaTypes: urlTypes, responseBodyPrototype: AddURLsResult{},
		handleCrawl: (*inspectorHandlers).addURLs},
	{method: "GET", path: projectPathPattern + "/hosts", operationID: "hosts", role: RoleRead,
		summary: "The hosts of a project",
		queryParams: []queryParam{
			{name: "q", jsonType: "string", description: "only hosts whose name contains it"},
			{name: "state", jsonType: "string", enum: hostStates, description: "only hosts in this state"},
			{name: "sort", jsonType: "string", enum: hostSortKeys,
				description: "the order; without it, the hosts that need attention come first"},
			{name: "order", jsonType: "string", enum: []string{"asc", "desc"}, description: "default asc"},
			offsetParam, limitParam},
		responseBodyPrototype: HostListPage{}, handle: (*Server).listHosts},
	{method: "GET", path: projectPathPattern + "/hosts/{host}", operationID: "host", role: RoleRead,
		summary: "Everything known about a host", responseBodyPrototype: HostDetail{}, handle: (*Server).getHost},
	{method: "PUT", path: projectPathPattern + "/hosts/{host}/brake", operationID: "brakeHost", role: RoleOperate,
		summary: "Stop or slow a host, in all projects",
		description: "The brake takes effect at once, on visits in flight too, and is durable. The reason may be " +
			"in the body or in the header Decorum-Reason.",
		maxBodyBytes: maxSmallBodyBytes, requestMediaTypes: jsonTypes, requestBodyPrototype: BrakeRequest{},
		responseBodyPrototype: Brake{}, handle: (*Server).setBrake},
	{method: "DELETE", path: projectPathPattern + "/hosts/{host}/brake", operationID: "liftHostBrake",
		role: RoleOperate, summary: "Lift the brake of a host", maxBodyBytes: maxEmptyBodyBytes,
		handle: (*Server).liftBrake},
	{method: "GET", path: projectPathPattern + "/explain", operationID: "explain", role: RoleRead,
		summary: "How a crawl treats a URL, and why",
		queryParams: []queryParam{{name: "url", jsonType: "string",
			description: "the URL as it was found; required"}},
		responseBodyPrototype: URLExplanation{}, handleCrawl: (*inspectorHandlers).explainURL},
	{method: "GET", path: projectPathPattern + "/report", operationID: "report", role: RoleRead,
		summary:     "The state of a crawl",
		description: "With Accept: application/x-ndjson, the totals and then each host, one on each line.",
		queryParams: []queryParam{{name: "host", jsonType: "string", description: "this host only"},
			{name: "limit", jsonType: "integer", maxValue: 1 << 40,
				description: "the most hosts, and the most rules, to return; 0: all; default 100"}},
		responseBodyPrototype: CrawlReport{}, handleCrawl: (*inspectorHandlers).getReport},
	{method: "GET", path: projectPathPattern + "/frontier", operationID: "frontier", role: RoleRead,
		summary:               "The size of a crawl's frontier",
		responseBodyPrototype: FrontierStats{}, handleCrawl: (*inspectorHandlers).getFrontierStats},
	{method: "GET", path: projectPathPattern + "/frontier/urls", operationID: "frontierURLs", role: RoleRead,
		summary: "The URLs of a crawl's frontier",
		description: "JSON Lines, the URLs of each origin in the order of their visits. Only the role operate gets " +
			"context and body.",
		queryParams: []queryParam{{name: "host", jsonType: "string", description: "URLs of this host only"},
			{name: "origin", jsonType: "string", description: "URLs of this origin only, as https://example.com"},
			{name: "state", jsonType: "string", enum: frontierURLStates, description: "only URLs in this state"},
			{name: "limit", jsonType: "integer", maxValue: 1 << 40, description: "the most URLs to return; 0: all"}},
		responseBodyPrototype: FrontierURL{}, responseMediaType: jsonLinesType,
		handleCrawl: (*inspectorHandlers).listFrontierURLs},
	{method: "GET", path: projectPathPattern + "/ledger", operationID: "ledger", role: RoleRead,
		summary: "What permitted each request",
		description: "JSON Lines: the ledger's records of requests, answers, refusals and beginnings of runs, the " +
			"oldest first.",
		queryParams: []queryParam{{name: "url", jsonType: "string", description: "records of this URL only"},
			{name: "host", jsonType: "string", description: "records of this host only"}},
		responseBodyPrototype: ledger.Record{}, responseMediaType: jsonLinesType,
		handleCrawl: (*inspectorHandlers).listLedgerRecords},
	{method: "GET", path: projectPathPattern + "/robots/{origin}", operationID: "robots", role: RoleRead,
		summary:     "The robots.txt of an origin, as it was fetched",
		description: "The origin is percent-encoded, as https%3A%2F%2Fexample.com.",
		queryParams: []queryParam{{name: "version", jsonType: "string", description: "SHA-256 of an older version; " +
			"default: the last one fetched"},
			{name: "against", jsonType: "string", description: "SHA-256 of the version that diff starts from"}},
		responseBodyPrototype: RobotsFile{}, handle: (*Server).getRobotsFile},
	{method: "GET", path: projectPathPattern + "/visits", operationID: "visits", role: RoleRead,
		summary: "The visits in flight", responseBodyPrototype: []ActiveVisit(nil), handle: (*Server).listActiveVisits},
	{method: "GET", path: projectPathPattern + "/throughput", operationID: "throughput", role: RoleRead,
		summary: "The recent throughput of a project",
		queryParams: []queryParam{{name: "coarse", jsonType: "boolean",
			description: "a sample a minute for the last day, instead of one a second for the last minutes"}},
		responseBodyPrototype: []ThroughputSample(nil), handle: (*Server).getThroughput},
	{method: "GET", path: projectPathPattern + "/events", operationID: "projectEvents", role: RoleRead,
		summary: "The events of a project, as they happen", responseBodyPrototype: Event{},
		responseMediaType: eventStreamType, handle: (*Server).streamEvents},
	{method: "GET", path: "/api/v1/events", operationID: "events", role: RoleRead,
		summary: "The events of all projects, as they happen",
		description: "Server-sent events. Each is a JSON object; event names its type. Events are not " +
			"stored: a client that reconnects gets the events from then on.",
		responseBodyPrototype: Event{}, responseMediaType: eventStreamType, handle: (*Server).streamEvents},
	{method: "GET", path: brakesPath, operationID: "brakes", role: RoleRead, summary: "The brakes in force",
		responseBodyPrototype: []Brake(nil), handle: (*Server).listBrakes},
	{method: "PUT", path: brakesPath + "/{host}", operationID: "setBrake", role: RoleOperate,
		summary:      "Stop or slow a host, or a domain, in all projects",
		maxBodyBytes: maxSmallBodyBytes, requestMediaTypes: jsonTypes, requestBodyPrototype: BrakeRequest{},
		responseBodyPrototype: Brake{}, handle: (*Server).setBrake},
	{method: "DELETE", path: brakesPath + "/{host}", operationID: "liftBrake", role: RoleOperate,
		summary: "Lift a brake", maxBodyBytes: maxEmptyBodyBytes, handle: (*Server).liftBrake},
	{method: "POST", path: reloadPath, operationID: "reload", role: RoleOperate,
		summary: "Read all project files again", maxBodyBytes: maxEmptyBodyBytes,
		responseBodyPrototype: []ProjectReloadResult(nil), handle: (*Server).reloadProjects},
	{method: "POST", path: tokensPath + "/{token}/rotate", operationID: "rotateToken", role: RoleOperate,
		summary: "Replace a token of the daemon",
		description: "The name of the token is token (role operate) or token-read (role read). The daemon writes a " +
			"new token to its file before it answers. The old token, and the logins and event streams that it " +
			"opened, end at once. The answer does not contain the new token.",
		maxBodyBytes: maxEmptyBodyBytes, responseBodyPrototype: TokenRotation{}, handle: (*Server).rotateToken},
	{method: "GET", path: "/api/v1/audit", operationID: "audit", role: RoleRead,
		summary: "The audit: who changed what, the newest first",
		queryParams: []queryParam{
			{name: "before", jsonType: "integer", maxValue: 1 << 60, description: "only entries with a lower seq"},
			limitParam},
		responseBodyPrototype: AuditPage{}, handle: (*Server).listAuditEntries},
	{method: "GET", path: "/api/v1/about", operationID: "about", role: RolePublic,
		summary: "What site owners may know about the crawler", responseBodyPrototype: CrawlerIdentities{},
		handle: (*Server).getAbout},
	{method: "GET", path: keyDirectoryPath, operationID: "keys", role: RolePublic,
		summary: "The keys that requests of the crawls are signed with",
		description: "The directory of the host that the request names. Each key signs the answer (RFC " +
			"9421).",
		responseBodyPrototype: botauth.KeySet{}, responseMediaType: botauth.DirectoryMediaType,
		handle: (*Server).getSigningKeyDirectory},
	{method: "POST", path: loginPath, operationID: "login", role: RolePublic,
		summary:      "Exchange a token for a session, for browsers",
		maxBodyBytes: maxEmptyBodyBytes, requestMediaTypes: formTypes, handle: (*Server).login},
	{method: "POST", path: "/logout", operationID: "logout", role: RolePublic, summary: "End the session",
		maxBodyBytes: maxEmptyBodyBytes, requestMediaTypes: formTypes, handle: (*Server).logout},
	{method: "GET", path: healthPath, operationID: "health", role: RolePublic, summary: "Whether the process is alive",
		responseBodyPrototype: Health{}, handle: (*Server).getHealth},
	{method: "GET", path: readyPath, operationID: "ready", role: RolePublic,
		summary: "Whether every project that should run does run",
		description: "503 if not: a project has failed, waits for free disk space, or waits for the servers that " +
			"keep its state. A caller with a token gets the reasons.", responseBodyPrototype: Health{},
		handle: (*Server).getReadiness},
	{method: "GET", path: metricsPath, operationID: "metrics", role: RoleRead, summary: "Metrics for Prometheus",
		responseBodyPrototype: "", responseMediaType: "text/plain", handle: (*Server).getMetrics},
	{method: "GET", path: "/openapi.json", operationID: "openapi", role: RoleRead, summary: "This document",
		responseBodyPrototype: map[string]any(nil), handle: (*Server).getOpenAPI},
}

var (
	hostStates        = []string{"due", "waiting", "held", "set aside", "resting", "done"}
	frontierURLStates = []string{"queued", "resting", "parked"}
	hostSortKeys      = []string{"host", "state", "queued", "due", "pace", "last_status",
		"robots_age", "failures", "requests"}
)

// Health is the health of the daemon.
type Health struct {
	Status  string   `json:"status"`            // ok, or why not
	Reasons []string `json:"reasons,omitempty"` // each reason, for callers with the role read
}

// openAPIJSON is the OpenAPI document (3.1) of the routes. openapi_generate_test.go writes it:
//
//	go test ./crawler/daemon/api -run TestOpenAPIDocument -update
//
//go:embed openapi.json
var openAPIJSON []byte

// openAPIVersion is the placeholder for the version in openapi.json.
const openAPIVersion = "(the program's version)"

// openAPIDocument returns the OpenAPI document with the program's version.
func openAPIDocument(version string) []byte {
	old, _ := json.Marshal(openAPIVersion)
	v, _ := json.Marshal(version)
	return bytes.Replace(openAPIJSON, old, v, 1)
}
