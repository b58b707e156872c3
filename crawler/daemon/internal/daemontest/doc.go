// Package daemontest holds what tests of the daemon's packages share: webs on loopback with
// a directory to crawl them from, and a daemon that runs for the time of a test. Begin
// reading at WebFixture and DaemonFixture.
package daemontest
