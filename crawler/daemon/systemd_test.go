package daemon

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// listenAsSystemd returns a socket as the service manager has it.
func listenAsSystemd(t *testing.T) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// readNotification returns the next thing that the service manager is told.
func readNotification(t *testing.T, conn *net.UnixConn) string {
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

// Who is not started by a service manager tells nobody.
func TestNotifyNobody(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := NotifySystemd("READY=1"); err != nil {
		t.Error(err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	if err := NotifySystemd("READY=1"); err == nil {
		t.Error("a socket that nobody listens at takes a word")
	}
}
