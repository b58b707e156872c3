// Package api is what a daemon shows of itself: the words of its HTTP API, and
// the server that speaks them.
//
// A Daemon runs crawls, each a project with a file of its own. The types of this
// package are its answers, as they are in JSON: the API, the page in a browser and
// the command line show the same. Errors are problem details (RFC 9457). All
// times are RFC 3339 in UTC; what ends in _ms is in milliseconds.
package api
