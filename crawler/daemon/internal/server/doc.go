// Package server serves a daemon: it listens on TCP and on the daemon's Unix socket, decides
// who may keep a connection, reads tokens and certificates, and speaks to systemd. What is
// answered is decided by packages api, page and metrics.
//
// Begin reading at OpenListeners, then Server.AttachDaemon and Server.Serve. decorum serve
// calls them. Server.Serve starts a goroutine for each listener; they end with its context.
package server
