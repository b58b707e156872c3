// Package httpheader decides what the headers of a crawl's requests may contain: the User-Agent
// with its contact, and the headers that a user may add.
//
// Begin with CheckCustom and BuildUserAgent. crawler/project checks the settings of a project file
// with it, crawler/httpfetch its Config, and crawler/collyfetch the headers that callbacks set.
//
// The package sends nothing, starts no goroutine and has no lock.
package httpheader
