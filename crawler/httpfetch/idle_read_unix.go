//go:build unix

package httpfetch

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// readArrived reads what has arrived on c into b, without waiting. If nothing has arrived, the error is
// os.ErrDeadlineExceeded, and io.EOF if the other side has closed the connection.
func readArrived(c net.Conn, b []byte) (n int, err error) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return readWithin(c, b, time.Millisecond) // a connection that a proxy package wraps
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	if rawErr := raw.Read(func(fd uintptr) bool {
		for {
			if n, err = syscall.Read(int(fd), b); err != syscall.EINTR {
				return true // do not wait
			}
		}
	}); rawErr != nil {
		return 0, rawErr
	}
	switch {
	case err == syscall.EAGAIN:
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}
