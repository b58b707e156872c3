// Package http1 sends HTTP/1.1 requests (RFC 9112) over connections that need neither a goroutine nor a
// buffer while they are idle, unlike those of http.Transport: a polite crawl has thousands of them, and
// waits at most of its hosts most of the time. A request is written and its response is read by the
// goroutine of the caller, which also saves the hand-over between goroutines.
//
// Begin reading at Transport.RoundTrip. Reading and writing of messages is that of net/http.
//
// Unlike http.Transport, a Transport never sends a request twice, knows neither proxies nor HTTP/2, and
// learns only at the next request that a server has closed an idle connection.
//
// # Goroutines and locks
//
// The package starts no goroutine. Transport.mu guards the idle connections; it is not held while a
// connection is dialled, used or closed.
package http1
