// Package lint tells the author of a robots.txt what is wrong with it, and what a new
// version of it changes.
//
// Begin reading at Check, which returns the Findings of one file, and at Diff, which compares
// two files by what they mean to each agent. Both read a file with the parsers of package
// robots and of its internal packages, so that a line is incorrect here if and only if
// crawlers ignore it. Check also reads the file as a robot of the 1994 standard does.
//
// The decorum robots commands call it. It decides nothing of a crawl, never fails, starts no
// goroutine and has no locks. What it compares is bounded: see maxComparedAgents and
// maxComparedRules.
package lint
