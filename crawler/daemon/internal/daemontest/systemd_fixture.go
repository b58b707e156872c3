package daemontest

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// ListenAsSystemd returns a socket that receives notifications, as the service manager does.
func ListenAsSystemd(t *testing.T) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram",
		&net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ReadNotification returns the next notification. It waits up to a minute.
func ReadNotification(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	text := make([]byte, 100)
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[:n])
}
