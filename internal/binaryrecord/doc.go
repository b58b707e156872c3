// Package binaryrecord writes and reads the fields of the binary records of stores and of the
// crawler: numbers of variable length, strings with their length before them, and times. The
// package that owns a record decides which fields it has, and in which order:
// storage/internal/record and storage/bolt for URLs, hosts and origins, crawler for the statistics
// of a host.
//
// Begin with Reader. The package starts no goroutine and has no lock.
package binaryrecord
