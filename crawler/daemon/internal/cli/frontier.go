package cli

import (
	"github.com/spf13/cobra"
)

const frontierHelp = `Look into the frontier of a crawl, its queues and what it has seen, add to it, and
move it to another store.
The crawl must not be running: stop it first, --resume goes on. Nothing is sent.`

func newFrontierCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "frontier", Short: "Look into a crawl's queues, add to them, move them", Long: frontierHelp,
		Args: RejectUnknownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(NewFrontierStatsCommand(env), NewFrontierListCommand(env), NewAddCommand(env), NewExportCommand(env),
		NewImportCommand(env), NewCompactCommand(env))
	return c
}
