// Package manpage writes the help of commands as man pages, one for each command. Begin reading at Write.
//
// It starts no goroutine and has no locks.
package manpage
