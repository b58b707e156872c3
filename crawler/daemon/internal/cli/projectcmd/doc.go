// Package projectcmd implements the commands about project files: decorum check and decorum init.
// They send no request and open no state of a crawl.
//
// Begin reading at NewCheckCommand in check.go and NewInitCommand in init.go. Package cli calls them;
// package project decides what is valid.
//
// The package starts no goroutine and has no locks.
package projectcmd
