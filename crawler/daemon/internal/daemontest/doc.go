// Package daemontest holds helpers for the tests of the daemon's packages: webs on loopback with a
// directory for a crawl, and a daemon that runs until the test ends. Begin reading at WebFixture and
// DaemonFixture. DaemonFixture.Run starts a goroutine that Stop, or the end of the test, ends.
package daemontest
