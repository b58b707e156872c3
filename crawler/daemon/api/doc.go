// Package api defines the HTTP API of a daemon: the types of its answers, a server and a client.
//
// The package decides who may make a call, what each call takes, and how an answer looks in JSON.
// A Daemon runs crawls; each crawl is a project with a file. An Inspector answers questions about
// one crawl, whether that is a project of a daemon, a crawl in the foreground, or the files of a
// stopped crawl. The API, the page in a browser and the command line show the same types. Errors
// are problem details (RFC 9457), times are RFC 3339 in UTC, and fields whose name ends in _ms
// are milliseconds.
//
// A program calls a daemon with a Client:
//
//	c := api.Client{Server: "http://127.0.0.1:8470", Token: token}
//	projects, err := c.Projects(ctx)
//	stats, err := c.Crawl("books").FrontierStats(ctx)
//
// Programs in other languages start from GET /openapi.json, which is generated from the table of
// routes and from the comments of the types in this package.
//
// Begin reading at routes in routes.go, the table of all calls; then routeHandler in
// route_handler.go, the steps of one call; then Daemon and Inspector, which do the work.
//
// NewServer starts no goroutine. Serve and ServeSocket run an http.Server until their context is
// done. A handler ends the goroutines that it starts before it returns.
//
// AuditLog.syncMu is locked before AuditLog.mu. No other two locks of the package are held
// together, and no lock is held during a call of a Daemon or an Inspector.
//
// The package never makes a crawl's requests, and never reads a project's files.
package api
