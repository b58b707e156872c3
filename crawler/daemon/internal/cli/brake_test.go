package cli

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
)

// TestBrakeCommandNeedsAHost: a name that no server can have is wrong usage, and no daemon is asked.
func TestBrakeCommandNeedsAHost(t *testing.T) {
	for _, name := range []string{"a\nb", "a..b"} {
		runCommand(t, "brake", name, "--reason", "test", "--data", t.TempDir()).want(t, command.ExitUsage, "is not the name of a host")
	}
}
