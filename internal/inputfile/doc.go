// Package inputfile reads small files whose names a user or a project gives: keys, tokens,
// passwords, certificates. It limits their length, and refuses a private key that other users may
// read.
//
// The package starts no goroutine and has no lock.
package inputfile
