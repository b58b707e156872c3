// Package supervisortest runs a supervisor of projects over a web on loopback, for the tests of
// packages that serve or command a supervisor. Begin reading at SupervisorFixture. Its goroutines are
// those of daemontest.DaemonFixture, which ends them with the test.
package supervisortest
