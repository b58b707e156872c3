package cli

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor/supervisortest"
)

// A commandFixture is a daemon that commands call.
type commandFixture struct {
	*supervisortest.SupervisorFixture
}

func newCommandFixture(t *testing.T, sites ...crawltest.Site) *commandFixture {
	t.Helper()
	return &commandFixture{supervisortest.NewFixture(t, sites...)}
}
