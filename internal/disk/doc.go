// Package disk writes files so that they survive a crash: whole files under their name
// (WriteFileAtomic), files that are appended to (AppendSyncTracker), and the names in directories
// (SyncDir). It also decides the modes of files and directories, and which write errors are
// temporary (IsFull).
//
// The package starts no goroutine. AppendSyncTracker.syncMu, which is held during the Sync of a file,
// comes before AppendSyncTracker.mu.
package disk
