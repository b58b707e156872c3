// Package transfer implements the commands that change or move the state of a crawl: decorum
// frontier add, and for a stopped crawl export, import and compact. It decides the format of an
// export, and when an import is complete. It never sends a request.
//
// Begin reading at NewExportCommand. export.go defines the lines of an export; import.go opens the
// stores of the new crawl, and importer.go writes the lines into them. Package cli calls the New
// functions.
//
// add and import read their input in a goroutine. It ends with the input or, where a read from a
// terminal does not return, with the process. importer.writeNotesToStore writes notes in up to 16
// goroutines and waits for them. The package has no locks.
package transfer
