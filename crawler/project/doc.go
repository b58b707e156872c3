// Package project is the project file: what one crawl is to do. It reads YAML over the
// defaults, refuses what makes no sense before anything is sent, and says in which line
// and column (*Error). A value comes from the file or from a flag of the command line,
// and flags win; both are read by the same code and checked in one place.
//
//	p, err := project.Read("books.yaml")
//
// Begin reading at Project, whose fields are those of the file by their yaml tags, then
// File, which knows where each value came from, and checkProject. Methods such as
// PolitenessPolicy and ScopeConfig translate a checked project into the configuration of
// the packages that decide; they return the zero of those packages where the file's zero
// means none.
//
// The package starts no goroutine and has no locks. It sends nothing, and opens no file
// but the project file and those that the project names, by the function that it is given.
package project
