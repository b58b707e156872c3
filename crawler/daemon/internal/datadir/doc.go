// Package datadir manages the directory of a crawl or of a daemon: the names of its files, its lock, its
// socket, and how its stores are opened, in files or in Redis. It decides whether a directory may be used
// for a new or a resumed crawl. It knows nothing of what the stores hold.
//
// Begin reading at StateDir in state_dir.go, then at OpenStores in stores.go. The commands, the outputs and
// the daemon call it.
//
// The package starts no goroutine. Its one lock is durableLengthRecorder.mu. A holder calls
// bolt.Options.ListOutputFiles, which takes the locks of the outputs.
package datadir
