// Package reporttext formats what people read of a crawl: lines and tables, refusals, parked
// URLs, delays and the rules of a verdict, for the reports of a stopped crawl, the forecast
// of a dry run and the display of a daemon.
//
// Begin reading at Builder. The packages of commands call it. It starts no goroutine and has
// no locks.
package reporttext
