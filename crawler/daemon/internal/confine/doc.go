// Package confine restricts the files that a project of the daemon's API names: it reads
// below one directory and writes below another or its own, whatever links lead there.
//
// Begin reading at ProjectAccess. The daemon makes one for each project that came by the API; the
// outputs and whatever reads a file of the project open their files through it. The
// package starts no goroutine and has no lock.
package confine
