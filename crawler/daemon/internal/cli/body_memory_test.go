package cli

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// TestBodyMemory checks that the default is that of bodymem, and that too small a size is wrong usage.
func TestBodyMemory(t *testing.T) {
	for _, tt := range []struct{ size, want project.Size }{{0, project.Size(bodymem.DefaultSize())},
		{64 << 20, 64 << 20}} {
		a := new(program)
		if err := a.initBodyMemory(tt.size); err != nil || a.BodyMemory.Size() != int64(tt.want) {
			t.Errorf("%v: got %v, want %v", tt.size, err, tt.want)
		}
	}
	if err := new(program).initBodyMemory(1 << 20); command.ExitCode(err) != command.ExitUsage {
		t.Errorf("1 MiB: got %v, want wrong usage", err)
	}
}
