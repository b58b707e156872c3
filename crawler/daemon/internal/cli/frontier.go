package cli

import (
	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/inspectcmd"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/transfer"
)

const frontierHelp = `Look into the frontier of a crawl, its queues and what it has seen, add to it, and
move it to another store. Nothing is sent.

stats, list and add ask the process that runs the crawl if there is one. For export,
import and compact the crawl must not be running: stop it first, --resume goes on.`

func newFrontierCommand(env *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "frontier", Short: "Look into a crawl's queues, add to them, move them", Long: frontierHelp,
		Args: command.RejectUnknownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(inspectcmd.NewFrontierStatsCommand(env), inspectcmd.NewFrontierListCommand(env), transfer.NewAddCommand(env), transfer.NewExportCommand(env),
		transfer.NewImportCommand(env), transfer.NewCompactCommand(env))
	return c
}
