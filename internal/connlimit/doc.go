// Package connlimit limits the open connections of a server whose callers prove who
// they are only after they have connected.
//
// A connection belongs to a stranger until the server calls [Conn.Trust]. Strangers
// have a limit by network and a limit in total. A stranger beyond a limit is accepted,
// and the connection that has been idle longest is closed in its place: a server that
// refused new connections would lock its operator out as well. A stranger has a short
// time to send a request; a trusted connection has the times of the server.
package connlimit
