// Package connlimit limits the open connections of a server whose clients authenticate after they
// have connected.
//
// A connection is untrusted until the server calls [Conn.Trust]. Untrusted connections are limited
// for each network and in total. The server accepts an untrusted connection beyond a limit, and
// closes the one that has been idle longest: refusing new connections would lock the operator out
// as well. An untrusted connection has a short time to send a request; a trusted connection has the
// time limits of the server. Begin reading with addConnAndEvictExcess in limiter.go.
//
// The package starts no goroutine, but Limiter sets a timer for each untrusted connection.
// Limiter.mu is its only lock, and no connection is closed while it is held.
package connlimit
