// Package binaryrecord writes and reads the fields of the records that stores and the crawler keep as
// bytes: numbers of variable length, texts with their length before them, and times. What the fields
// of a record are, and in which order, is decided by the package that keeps it: storage/internal/record
// and storage/bolt for URLs, hosts and origins, crawler for the statistics of a host.
//
// Begin with Reader. The package starts no goroutine and has no lock.
package binaryrecord
