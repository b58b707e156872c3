// Command decorum is a polite web crawler: it obeys robots.txt and keeps the pace of each host. See
// decorum --help, and docs/commands.md for all commands.
//
// This file only calls daemon.Main. To add callbacks to the command, write a program that calls
// daemon.Main with Handlers. Package crawler/daemon/internal/cli implements the commands.
package main

import "github.com/decorum-crawler/decorum/crawler/daemon"

func main() { daemon.Main(nil) }
