// Package dialrules reads and applies the rules of where connections of a crawl go: connect-to
// rules, the address of a proxy, and the ports to which no visit connects.
//
// Begin with ConnectTo and CheckPort. crawler/project checks the settings of a project file
// with it, crawler/httpfetch dials by it, and the command explain says what it refuses.
//
// The package connects to nothing, looks up no names, starts no goroutine and holds no lock.
// Addresses that are refused because they are not public are crawler/httpfetch's part.
package dialrules
