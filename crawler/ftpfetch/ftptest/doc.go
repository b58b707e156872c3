// Package ftptest runs a real FTP server on loopback, for tests of fetchers.
//
//	server := ftptest.Start(t, dir, nil) // serves the files in dir until t ends
//	...
//	if got := server.CommandsNamed("RETR"); ... // what the client sent
//
// Start runs the server in a goroutine that ends with the test. Server.mu is the only lock.
package ftptest
