// Package confine restricts the files of a project that came by the daemon's API. Such a project reads
// below one directory, and writes below another one or its own. A symbolic link does not lead out.
//
// Begin reading at ProjectAccess in project_access.go. The daemon makes one for each project that came by
// the API. The outputs, and all code that reads a file of the project, open their files through it. The
// package decides nothing about who may use the API. It starts no goroutine and has no lock.
package confine
