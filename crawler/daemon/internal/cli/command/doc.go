// Package command holds what the commands of decorum share: Env with the standard writers,
// the signals and the dependencies of a crawl, the exit codes, and the checks of arguments
// and flags. It knows no command.
//
// Begin reading at Env. Package cli makes one Env for each call and hands it to the packages
// of commands. WithSignalCancel starts one goroutine, which the func that it returns ends.
// The package has no locks.
package command
