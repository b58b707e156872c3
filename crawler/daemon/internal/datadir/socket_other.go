//go:build !linux

package datadir

import (
	"fmt"
	"net"
)

// setSocketMode does nothing: the file's mode is set once the file is there.
func setSocketMode(uintptr) error { return nil }

// shortSocketAddr returns an error: only Linux has another path to the socket.
func (d StateDir) shortSocketAddr() (addr string, release func(), err error) {
	return "", nil, fmt.Errorf("the path of %s is longer than %d bytes, which is all that the path of a socket may have: "+
		"choose a shorter --data", d.Path(SocketFile), maxSocketPath)
}

// authorizeSocketPeer accepts every peer: the mode of the socket's file limits who can connect.
func authorizeSocketPeer(*net.UnixConn) (p socketPeerAddr, ok bool) { return "unix", true }
