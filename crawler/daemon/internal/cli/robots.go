package cli

import "github.com/spf13/cobra"

// NewRobotsCommand returns the command robots and its subcommands.
func NewRobotsCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "robots", Short: "Ask robots.txt files", Args: RejectUnknownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCheckCommand(env), newBatchCommand(env), newLintCommand(env), newDiffCommand(env))
	return c
}
