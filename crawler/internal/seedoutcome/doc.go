// Package seedoutcome collects why the seeds of a crawl led to no page, for the error of a crawl that has
// found none. Begin with Recorder, whose methods are hooks of a crawl.
//
// The package starts no goroutine. Recorder.mu is its only lock.
package seedoutcome
