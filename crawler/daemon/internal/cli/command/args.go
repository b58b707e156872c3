package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// RejectUnknownCommand returns an error for an argument that names no command.
func RejectUnknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage.Errorf("unknown command %q for %s%s; see %s --help", args[0], c.CommandPath(), hint, c.CommandPath())
}

// ArgsOrUsageError makes cobra's check of arguments an error of usage.
func ArgsOrUsageError(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usage.Errorf("%w; see %s --help", err, c.CommandPath())
		}
		return nil
	}
}

// CheckFormat returns an error unless format is one of those given.
func CheckFormat(format string, formats ...string) error {
	for _, f := range formats {
		if f == format {
			return nil
		}
	}
	return usage.Errorf("--format: %q is not one of %s", format, strings.Join(formats, ", "))
}

// ParseHostFlag returns the host that --host names, as the crawl does; empty: none.
func ParseHostFlag(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	host, ok := project.CanonicalHost(s)
	if !ok {
		return "", usage.Errorf("--host: %q is not the name of a host, as in example.com", s)
	}
	return host, nil
}

// AddDataFlag adds the flag that says which crawl is meant.
func AddDataFlag(fs *pflag.FlagSet, dir *string) {
	fs.StringVar(dir, "data", project.Default().Store.Path, "`DIR` that keeps the state of the crawl")
}
