package datadir

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// setSocketMode sets the mode that bind gives to the socket file.
func setSocketMode(fd uintptr) error { return unix.Fchmod(int(fd), 0o600) }

// authorizeSocketPeer returns the user and the process of the peer, as the kernel reports them, and whether
// the peer may operate the daemon: root and the daemon's user may.
func authorizeSocketPeer(c *net.UnixConn) (peer string, ok bool) {
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
	return fmt.Sprintf("unix:uid=%d,pid=%d", cred.Uid, cred.Pid), cred.Uid == 0 || int(cred.Uid) == os.Geteuid()
}
