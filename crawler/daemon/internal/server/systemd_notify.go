package server

import (
	"errors"
	"net"
	"os"
)

// NotifySystemd tells the service manager that started this process how it stands,
// if it wants to know: sd_notify(3).
func NotifySystemd(state string) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}
