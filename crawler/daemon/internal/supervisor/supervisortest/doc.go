// Package supervisortest runs a supervisor of projects over a web on loopback, for the tests
// of packages that serve or command it. Begin reading at SupervisorFixture.
package supervisortest
