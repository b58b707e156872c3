package cli

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// addBodyMemoryFlag adds --body-memory, which sets size. It is a setting of the process, not of a
// project: the bodies of all projects share the memory.
func addBodyMemoryFlag(fs *pflag.FlagSet, size *project.Size) {
	fs.TextVar(size, "body-memory", project.Size(0),
		"use at most `SIZE` of memory, as 512MiB, for the bodies of all answers in flight; a visit that gets\n"+
			"none is repeated later (default: a quarter of GOMEMLIMIT or of the memory that the process may use)")
}

// initBodyMemory creates the budget of memory that the bodies of all crawls share. size is in
// bytes; 0 means a quarter of GOMEMLIMIT or of the memory that the process may use.
func (a *program) initBodyMemory(size project.Size) error {
	m, err := bodymem.New(cmp.Or(int64(size), bodymem.DefaultSize()))
	if err != nil {
		return usage.Errorf("--body-memory: %w", err)
	}
	a.BodyMemory = m
	return nil
}
