// Package connlimit limits the open connections of a server whose callers authenticate
// after they have connected.
//
// A connection belongs to a stranger until the server calls [Conn.Trust]. Strangers
// have a limit by network and a limit in total. The server accepts a stranger beyond a
// limit, and closes the connection that has been idle longest: refusing new connections
// would lock the operator out as well. A stranger has a short time to send a request; a
// trusted connection has the time limits of the server.
package connlimit
