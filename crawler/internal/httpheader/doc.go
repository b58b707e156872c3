// Package httpheader decides what the header of a crawl's requests may say: the User-Agent,
// the contact in it, and which headers a user may add.
//
// Begin with CheckCustom and BuildUserAgent. crawler/project checks the settings of a project
// file with it, crawler/httpfetch its Config, and crawler/collyfetch the headers that
// callbacks set.
//
// The package sends nothing, starts no goroutine and holds no lock.
package httpheader
