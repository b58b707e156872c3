// Package api is what a daemon shows of itself: the words of its HTTP API, and
// the server that speaks them.
//
// A Daemon runs crawls, each a project with a file of its own. The types of this
// package are its answers, as they are in JSON: the API, the page in a browser and
// the command line show the same. An Inspector answers questions about one crawl, which
// may be a project, a crawl in the foreground, or the files of one that is stopped. Errors are problem details (RFC 9457). All
// times are RFC 3339 in UTC; what ends in _ms is in milliseconds.
//
// A program that speaks to a daemon uses a Client:
//
//	c := api.Client{Server: "http://127.0.0.1:8470", Token: token}
//	projects, err := c.Projects(ctx)
//	stats, err := c.Crawl("books").FrontierStats(ctx)
//
// In any other language, GET /openapi.json says all: that document is made of the
// routes, and of the comments of the types below. NewServer is the other side.
package api
