// Package transfer is the commands that change or move the state of a crawl: decorum frontier
// add, and, for a crawl that is stopped, export, import and compact. export.go defines the lines of an export, and
// importer.go reads them into the stores of another crawl.
//
// Begin reading at NewExportCommand. Package cli calls it. add and import read their input in
// a goroutine, which ends with the input or, where a read of a terminal does not return, with
// the process. writeNotesToStore sets notes in up to 16 goroutines, and waits for them. The
// package has no locks.
package transfer
