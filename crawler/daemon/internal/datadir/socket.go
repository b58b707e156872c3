package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// SocketFile is the Unix domain socket in the directory of a daemon, or of a crawl in the foreground. A
// process that can connect to it operates the daemon without a token. Its mode is therefore 0600, and on
// Linux the peer must be root or the daemon's user. If the path would be too long for a socket, the socket
// is in a temporary directory of mode 0700, and the lock file names it.
const SocketFile = "socket"

// maxSocketPath is the maximum length in bytes of a socket's path on every system: sun_path has 104 bytes on
// BSD and macOS, including the final NUL.
const maxSocketPath = 103

// ListenSocket creates the socket of the locked directory, and listens on it. It replaces an existing
// socket, which a killed process has left. DirectoryLock.Close removes the socket; closing the listener
// does not.
func (h *DirectoryLock) ListenSocket(ctx context.Context) (net.Listener, error) {
	h.socket = h.stateDir.Path(SocketFile)
	if err := removeSocketFile(h.socket); err != nil {
		h.socket = ""
		return nil, err
	}
	if len(h.socket) > maxSocketPath {
		dir, err := os.MkdirTemp("", "decorum-")
		if err != nil {
			h.socket = ""
			return nil, err
		}
		h.socket = filepath.Join(dir, SocketFile)
		h.writeHolder(h.socket)
	}
	// Set the mode before and after bind. On Linux the new file takes its mode from the descriptor, so that
	// other users cannot connect even before the chmod below. Elsewhere the first step may fail.
	setPrivateMode := func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = setSocketMode(fd) })
	}
	l, err := (&net.ListenConfig{Control: setPrivateMode}).Listen(ctx, "unix", h.socket)
	if err != nil {
		return nil, errors.Join(err, h.removeSocket())
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(h.socket, 0o600); err != nil {
		return nil, errors.Join(err, l.Close(), h.removeSocket())
	}
	return sameUserListener{l}, nil
}

// removeSocket removes the socket that ListenSocket has created, if any.
func (h *DirectoryLock) removeSocket() error {
	name := h.socket
	if name == "" {
		return nil
	}
	h.socket = ""
	if name == h.stateDir.Path(SocketFile) {
		return removeSocketFile(name)
	}
	h.writeHolder("") // first: once the socket is gone, another user may create one with its name
	return removeSocketAndTempDir(name)
}

// removeSocketAndTempDir removes a socket and its temporary directory, if they exist.
func removeSocketAndTempDir(name string) error {
	err := errors.Join(removeSocketFile(name), os.Remove(filepath.Dir(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeStaleSocket removes the socket at path name, which a killed process has left in a temporary
// directory. It does nothing for an empty name, and for a socket that accepts a connection: then the lock
// file was copied with its directory, and the process that it names is alive.
func removeStaleSocket(name string) {
	if name == "" {
		return
	}
	if c, err := net.Dial("unix", name); err == nil {
		_ = c.Close() // the connection has shown that a process listens
		return
	}
	_ = removeSocketAndTempDir(name) // after an error it stays, like any temporary file of a killed process
}

// removeSocketFile removes a socket if it exists. It returns an error for a file that is not a socket.
func removeSocketFile(name string) error {
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

// DialSocket connects to the socket of the process that runs the daemon or the crawl of the directory.
func (d StateDir) DialSocket(ctx context.Context) (net.Conn, error) {
	name := d.socketPath()
	if name != d.Path(SocketFile) && !d.isLockFileLocked() {
		// The process was killed, and another user may have created a socket with that name since.
		return nil, &net.OpError{Op: "dial", Net: "unix", Err: fs.ErrNotExist}
	}
	return new(net.Dialer).DialContext(ctx, "unix", name)
}

// socketPath returns the path of the directory's socket: the path in the lock file or, by default,
// SocketFile.
func (d StateDir) socketPath() string {
	f, err := os.Open(d.Path(LockFile))
	if err == nil {
		defer f.Close()
		if socket := readLockFile(f).socket; socket != "" {
			return socket
		}
	}
	return d.Path(SocketFile)
}

// A sameUserListener accepts only connections for which authorizeSocketPeer returns true.
type sameUserListener struct{ net.Listener }

// Accept returns the next connection of a peer that may operate the daemon.
func (l sameUserListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, ok := authorizeSocketPeer(c.(*net.UnixConn))
		if ok {
			return socketPeerConn{c, peer}, nil
		}
		_ = c.Close() // an error here has no remedy
	}
}

// A socketPeerConn returns its peer as its remote address, since the client's end of a Unix
// domain socket has no address.
type socketPeerConn struct {
	net.Conn
	peer string // describes the process that connected
}

// RemoteAddr returns an address whose name describes the peer.
func (c socketPeerConn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: c.peer, Net: "unix"} }
