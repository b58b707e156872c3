// Package terminal writes to standard output and standard error: StickyErrorWriter remembers
// the first write that failed, and StatusLineWriter keeps one line of progress below the
// text. It knows no crawl. The commands call it; it starts no goroutine.
//
// StatusLineWriter.mu guards the line that is drawn, so that a log may be written at any
// time.
package terminal
