package datadir

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// setSocketMode sets the mode that the socket file gets at bind.
func setSocketMode(fd uintptr) error { return unix.Fchmod(int(fd), 0o600) }

// shortSocketAddr returns an address of the directory's socket by way of /proc, for
// directories whose path is too long for the address of a socket.
func (d StateDir) shortSocketAddr() (addr string, release func(), err error) {
	fd, err := unix.Open(string(d), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: string(d), Err: err}
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, SocketFile), func() { _ = unix.Close(fd) }, nil
}

// authorizeSocketPeer returns the peer's user and process by the kernel, and whether it may operate
// the daemon: root and the daemon's user may.
func authorizeSocketPeer(c *net.UnixConn) (p socketPeerAddr, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return "", false
	}
	var cred *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if controlErr != nil || err != nil {
		return "", false
	}
	p = socketPeerAddr(fmt.Sprintf("unix:uid=%d,pid=%d", cred.Uid, cred.Pid))
	return p, cred.Uid == 0 || int(cred.Uid) == os.Geteuid()
}
