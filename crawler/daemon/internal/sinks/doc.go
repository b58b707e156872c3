// Package sinks writes down what a crawl visits: lines of JSON with their bodies, WARC files,
// and the ledger. It decides how files rotate, what of them is kept after a crash, and
// what a crawl does while the disk is full.
//
// Begin reading at Open, which opens the Outputs of one crawl from a Config. The
// foreground crawl and the daemon open them, the engine passes them to the crawler, and the
// store calls Outputs.Sync before each of its own writes. The package starts no goroutine.
//
// Locks are taken in this order: LedgerWriter.retryMu, WARCArchive.diskFullRetryMu or
// JSONLRecorder.mu, then jsonlFile.mu. Each is held while its writer waits for room on the
// disk, which keeps the other writers of the same file waiting.
package sinks
