package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// SocketFile is a Unix domain socket in a daemon's directory. A process that can
// connect to it operates the daemon without a token: its mode is 0600, and on Linux the
// peer must be root or the daemon's user.
const SocketFile = "socket"

// maxSocketPath is how many bytes the path of a socket may have on every system:
// sun_path has 104 on BSD and macOS, one of them for the final NUL.
const maxSocketPath = 103

// ListenSocket creates the directory's socket. The caller holds the directory's lock,
// so an existing socket belongs to a killed daemon, and ListenSocket replaces it.
// Closing the listener does not remove the file; RemoveSocket does.
func (d StateDir) ListenSocket(ctx context.Context) (net.Listener, error) {
	if err := d.RemoveSocket(); err != nil {
		return nil, err
	}
	addr, release, err := d.socketAddr()
	if err != nil {
		return nil, err
	}
	defer release()
	// On Linux the new file takes its mode from the descriptor, so that no other
	// user can connect even before the chmod below. Elsewhere this may fail.
	setPrivateMode := func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = setSocketMode(fd) })
	}
	l, err := (&net.ListenConfig{Control: setPrivateMode}).Listen(ctx, "unix", addr)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(d.Path(SocketFile), 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return ownerListener{l}, nil
}

// RemoveSocket removes the directory's socket, if there is one. The caller holds the
// directory's lock.
func (d StateDir) RemoveSocket() error {
	name := d.Path(SocketFile)
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket: move it elsewhere", name)
	}
	return os.Remove(name)
}

// DialSocket connects to the daemon of the directory.
func (d StateDir) DialSocket(ctx context.Context) (net.Conn, error) {
	addr, release, err := d.socketAddr()
	if err != nil {
		return nil, err
	}
	defer release()
	return new(net.Dialer).DialContext(ctx, "unix", addr)
}

// socketAddr returns the address of the directory's socket, which is valid until
// release is called.
func (d StateDir) socketAddr() (addr string, release func(), err error) {
	if name := d.Path(SocketFile); len(name) <= maxSocketPath {
		return name, func() {}, nil
	}
	return d.shortSocketAddr()
}

// An ownerListener accepts connections from the daemon's user and from root only.
type ownerListener struct{ net.Listener }

// Accept returns the next connection of a peer that may operate the daemon.
func (l ownerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, ok := authorizeSocketPeer(c.(*net.UnixConn))
		if ok {
			return socketPeerConn{c, peer}, nil
		}
		_ = c.Close() // nothing else can be done if this fails
	}
}

// A socketPeerConn returns its peer as its remote address, since the client's end of a Unix
// domain socket has no address.
type socketPeerConn struct {
	net.Conn
	peer socketPeerAddr
}

// RemoteAddr returns the peer.
func (c socketPeerConn) RemoteAddr() net.Addr { return c.peer }

// A socketPeerAddr describes a process that connected to the socket.
type socketPeerAddr string

// Network is part of net.Addr.
func (socketPeerAddr) Network() string { return "unix" }

// String is part of net.Addr.
func (p socketPeerAddr) String() string { return string(p) }
