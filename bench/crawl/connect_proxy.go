package main

import (
	"io"
	"net"
	"net/http"
	"sync"
)

// connectProxy returns a handler of CONNECT requests (RFC 9110, 9.3.6) that connects clients to
// address, whichever host they name. It is for crawlers that have a setting for a proxy only.
func connectProxy(address string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "this proxy only connects", http.StatusMethodNotAllowed)
			return
		}
		server, err := net.Dial("tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer server.Close()
		client, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return
		}
		// A client may have sent its first record with the request.
		early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
		if _, err := server.Write(early); err != nil {
			return
		}
		joinConnections(client.(*net.TCPConn), server.(*net.TCPConn))
	})
}

// joinConnections copies each connection to the other until both have ended.
func joinConnections(a, b *net.TCPConn) {
	var group sync.WaitGroup
	group.Go(func() { io.Copy(a, b); a.CloseWrite() })
	group.Go(func() { io.Copy(b, a); b.CloseWrite() })
	group.Wait()
}
