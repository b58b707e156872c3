package cli

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// addBodyMemoryFlag adds the flag that sets the memory for bodies. It is a setting of the
// process, not of a project: the bodies of all projects share the memory.
func addBodyMemoryFlag(fs *pflag.FlagSet, size *project.Size) {
	fs.TextVar(size, "body-memory", project.Size(0),
		"memory for the bodies of all answers under way, `SIZE` as 512MiB; a visit that gets none is\n"+
			"made again later (default: a quarter of GOMEMLIMIT or of the memory that the process may use)")
}

// initBodyMemory creates the memory for the bodies of all crawls; size 0 means the
// default.
func (a *program) initBodyMemory(size project.Size) error {
	m, err := bodymem.New(cmp.Or(int64(size), bodymem.DefaultSize()))
	if err != nil {
		return usage.Errorf("--body-memory: %w", err)
	}
	a.BodyMemory = m
	return nil
}
