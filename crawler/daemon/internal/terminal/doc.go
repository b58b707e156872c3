// Package terminal writes to standard output and standard error. StickyErrorWriter remembers the first
// write that failed; StatusLineWriter keeps one line of progress below the text, or makes every line JSON. The
// commands use it.
// The package knows nothing of a crawl, and starts no goroutine.
//
// StatusLineWriter.mu makes Write and DrawStatusLine safe to call at the same time, so that a log may be
// written at any time. Its holder takes no other lock.
package terminal
