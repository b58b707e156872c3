// Command decorum is a polite web crawler: see decorum --help.
//
// A program with callbacks of its own is this one with Handlers.
package main

import "github.com/decorum-crawler/decorum/crawler/daemon"

func main() { daemon.Main(nil) }
