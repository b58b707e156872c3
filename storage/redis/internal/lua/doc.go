// Package lua holds the scripts that a store's servers run. Each file says what its
// script takes and returns.
//
// It decides what a call changes, and in which keys; see the documentation of package
// redis for the keys. Begin with common.lua, which loads and saves what a call changes,
// then read schedule.lua, lanes.lua and seen_set.lua, which all scripts share, and then
// any one script. Package client sends the scripts; packages redis and coord say which.
//
// It starts no goroutine and has no lock.
package lua
