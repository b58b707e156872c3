package command

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
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

// NewGroup returns a command that only holds others.
func NewGroup(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Args: RejectUnknownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// AddFormatFlag adds the flag that names one of several formats, the first if it is not given,
// and has c check it before c runs.
func AddFormatFlag(c *cobra.Command, format *string, formats ...string) {
	last := len(formats) - 1
	names := strings.Join(formats[:last], ", ") + " or " + formats[last]
	c.Flags().StringVar(format, "format", formats[0], "write `FORMAT`: "+names)
	c.PreRunE = func(*cobra.Command, []string) error { return CheckChoice("--format", *format, formats...) }
}

// CheckChoice returns an error unless the value of a flag is one of those given.
func CheckChoice(flag, value string, choices ...string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return usage.Errorf("%s: %q is not one of %s", flag, value, strings.Join(choices, ", "))
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

// An Env is what every command of one call of decorum works with.
type Env struct {
	Stdout  *terminal.StickyErrorWriter
	Stderr  *terminal.StatusLineWriter // standard error
	Signals <-chan os.Signal           // interrupts and SIGTERM
	engine.Dependencies
}

// WithSignalCancel returns a context that the first signal ends, with ErrInterrupted for
// its cause.
func (e *Env) WithSignalCancel(ctx context.Context) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case <-e.Signals:
			stop(engine.ErrInterrupted)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop(nil)
		listening.Wait()
	}
}
