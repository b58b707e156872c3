// Package lua holds the scripts that the servers of a store run. Each file says which arguments its
// script takes and what it returns. The package decides what a call changes, and in which keys; the
// documentation of package redis lists the keys.
//
// Begin with common.lua, which loads and saves the hashes that a call changes. Then read schedule.lua,
// lanes.lua and seen_set.lua, which all scripts share, and then any one script. Package client sends
// the scripts; packages redis and coord choose them. To add a script, add its file and a line to the
// variables in script.go.
//
// The package starts no goroutine and has no lock: a server runs one script at a time.
package lua
