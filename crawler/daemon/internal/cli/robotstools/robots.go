package robotstools

import (
	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
)

// NewRobotsCommand returns the command robots and its subcommands.
func NewRobotsCommand(env *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "robots", Short: "Ask robots.txt files", Args: command.RejectUnknownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCheckCommand(env), newBatchCommand(env), newLintCommand(env), newDiffCommand(env))
	return c
}
