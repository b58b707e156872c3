// Package datadir is the directory that keeps a crawl, or a daemon: where its files are, who
// holds its lock, and how its stores are opened, in files or in Redis. It decides whether
// the directory is fit for a crawl that begins or goes on.
//
// Begin reading at StateDir, then OpenStores. The commands, the outputs and the daemon
// call it. It starts no goroutine. Its one lock, in durableLengthRecorder, guards when
// lengths were last written.
package datadir
