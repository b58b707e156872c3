// Package daemon is the command line of decorum and the project file.
//
// It reads what somebody wants (Project), refuses what makes no sense before
// anything is sent, puts the rooms of the house together, runs the crawl, and
// tells how it goes. It decides nothing about a URL: robots, politeness and
// frontier do.
//
// A value comes from the project file or from a flag, and flags win. Both are
// read by the same code and checked in one place, so a mistake is reported the
// same way whichever of the two it is in.
package daemon
