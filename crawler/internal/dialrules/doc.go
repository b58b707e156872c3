// Package dialrules parses and applies the rules for where the connections of a crawl go:
// connect-to rules, the URL of a proxy, and the ports to which no visit connects.
//
// Begin with ConnectTo and CheckPort. crawler/project checks the settings of a project file with it,
// crawler/httpfetch applies it when it dials, and the command explain reports what it refuses.
//
// The package opens no connections, looks up no names, starts no goroutine and has no lock. It does not
// refuse addresses that are not public: crawler/httpfetch does.
package dialrules
