// Package command holds what the decorum commands share: Env (the standard writers, the signals and
// the dependencies of a crawl), the exit codes, and the checks of arguments and flags. It contains
// no command.
//
// Begin reading at Env in env_and_flags.go and at ExitError in exit.go. Package cli makes one Env
// for each call and passes it to the packages of commands.
//
// WithSignalCancel starts one goroutine, which the function that it returns ends. The package has
// no locks.
package command
