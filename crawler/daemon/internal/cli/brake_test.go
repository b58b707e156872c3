package cli

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
)

// TestBrakeCommandNeedsAHost checks that an impossible host name is wrong usage, and that the command
// then calls no daemon.
func TestBrakeCommandNeedsAHost(t *testing.T) {
	for _, name := range []string{"a\nb", "a..b"} {
		runCommand(t, "brake", name, "--reason", "test", "--data", t.TempDir()).want(t, command.ExitUsage,
			"is not a host name such as example.com")
	}
}
