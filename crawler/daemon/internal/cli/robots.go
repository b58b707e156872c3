package cli

import "github.com/spf13/cobra"

// newRobotsCommand returns the command robots and its subcommands.
func newRobotsCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "robots", Short: "Ask robots.txt files", Args: rejectUnknownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRobotsCheckCommand(env), newRobotsBatchCommand(env), newRobotsLintCommand(env), newRobotsDiffCommand(env))
	return c
}
