// Package project reads and checks project files, which describe one crawl in YAML. It decides
// which values are valid, and refuses invalid ones before the crawl sends a request, all at once
// (*ErrorList) and each with line and column (*Error). Fields that the file leaves out have the values
// of Default. A flag of the command line overrides its field; the same code parses and checks both.
//
//	p, err := project.Read("books.yaml")
//	if err != nil {
//		return err
//	}
//	policy := p.PolitenessPolicy()
//
// Begin reading at Project in project.go, whose yaml tags are the names of the fields in the file.
// File remembers the source of each value, File.decode parses the YAML, and checkProject lists the
// checks, many of which are rows of the tables in field_constraints.go. Methods such as
// PolitenessPolicy and ScopeConfig translate a checked project into the configuration of other
// packages. Where 0 means "none" in the file but "the default" in such a package, they translate the 0.
//
// The comments of Project and of the structs in it are the text of docs/project-file.md and of
// JSONSchema.
//
// The package starts no goroutine and has no locks. It sends nothing. It opens only the project file
// and the files that the project names; for the latter, the caller passes the function that opens
// them.
package project
