package server

import (
	"errors"
	"net"
	"os"
)

// NotifySystemd sends state, such as "READY=1", to the service manager that started this process: see
// sd_notify(3). Without NOTIFY_SOCKET in the environment it does nothing.
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
