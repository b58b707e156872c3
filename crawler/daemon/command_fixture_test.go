package daemon

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A commandFixture is a daemon that commands speak to.
type commandFixture struct{ *Fixture }

func newCommandFixture(t *testing.T, sites ...crawltest.Site) *commandFixture {
	t.Helper()
	return &commandFixture{NewFixture(t, sites...)}
}
