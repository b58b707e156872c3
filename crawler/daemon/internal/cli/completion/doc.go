// Package completion completes values of flags and arguments for shells: fixed words, and the hosts and
// projects of a data directory.
//
// Begin reading at Register. A completion never fails and never waits for more than timeout: without an
// answer it offers nothing. It neither locks nor changes a data directory. It starts no goroutine of its own
// and has no locks.
package completion
