//go:build !unix

package httpfetch

import (
	"net"
	"time"
)

// readArrived reads what has arrived on c into b, and hardly waits. If nothing has arrived, the error is
// os.ErrDeadlineExceeded, and io.EOF if the other side has closed the connection.
func readArrived(c net.Conn, b []byte) (int, error) { return readWithin(c, b, time.Millisecond) }
