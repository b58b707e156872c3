// Package sinks writes the outputs of a crawl: lines of JSON with the bodies of pages, WARC files, and the
// ledger. It decides how files rotate, which part of them survives a crash, and what a crawl does while
// the disk is full. It decides nothing about a visit.
//
// Begin reading at Open in outputs.go, which opens the Outputs of one crawl from a Config. The foreground
// crawl and the daemon call it, and the engine passes the outputs to the crawler. The store calls
// Outputs.Sync before each of its own writes, so that the output of a visit is on the disk before its ack.
//
// The package starts no goroutine. Locks are taken in this order: JSONLRecorder.mu, then jsonlFile.mu. A
// writer that waits for space on the disk holds JSONLRecorder.mu or, for the ledger and the WARC files,
// diskFullRetrier.mu, and calls Config.OnDiskFull with it; the other writers of the same file wait for it.
// A writer of a body holds no lock while it waits. Sync takes neither lock, so that a store can still sync
// while a writer waits.
package sinks
