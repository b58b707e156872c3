// Package server serves a daemon: it listens on TCP and on the daemon's Unix socket, decides who may
// keep a connection, reads tokens and certificates, and notifies systemd. It answers no request itself:
// packages api, page and metrics do.
//
// Begin reading at OpenListeners in server.go, then at Server.AttachDaemon and Server.Serve. decorum
// serve calls them in this order.
//
// Server.Serve starts one goroutine for the socket and one for the page of the bot, and serves the API
// itself. All of them end with its context, and Serve waits. The only lock is reloadingCertificate.mu;
// its holder logs and takes no other lock.
package server
