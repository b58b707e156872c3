package command

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// RejectUnknownCommand is a cobra.PositionalArgs for groups of commands: it returns a usage error,
// with the nearest names, if args is not empty.
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

// NewGroup returns a command that only holds the subcommands commands. Run by itself it prints its
// help.
func NewGroup(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Args: RejectUnknownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// AddFormatFlag adds --format to c, with the first of formats as its default. It sets c.PreRunE to
// check the flag's value. If one of formats is json or jsonl, --json is another spelling of --format with the first
// of them, which help does not show.
func AddFormatFlag(c *cobra.Command, format *string, formats ...string) {
	last := len(formats) - 1
	names := strings.Join(formats[:last], ", ") + " or " + formats[last]
	c.Flags().StringVar(format, "format", formats[0], "write `FORMAT`: "+names)
	// It fails only for a flag that does not exist.
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	i := slices.IndexFunc(formats, func(f string) bool { return strings.HasPrefix(f, "json") })
	if i < 0 {
		return
	}
	c.Flags().BoolFunc("json", "the same as --format "+formats[i], func(value string) error {
		isJSON, err := strconv.ParseBool(value)
		if isJSON {
			*format = formats[i]
		}
		return err
	})
	c.Flags().Lookup("json").Hidden = true
	c.PreRunE = func(*cobra.Command, []string) error { return CheckChoice("--format", *format, formats...) }
}

// CheckChoice returns a usage error unless value, the value of flag, is one of choices.
func CheckChoice(flag, value string, choices ...string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return usage.Errorf("%s: %q is not one of %s", flag, value, strings.Join(choices, ", "))
}

// ParseHostFlag returns s, the value of --host, in the canonical form that crawls use. It returns
// "" for "", and a usage error if s is not a host name.
func ParseHostFlag(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	host, ok := project.CanonicalHost(s)
	if !ok {
		return "", usage.Errorf("--host: %q is not a host name such as example.com", s)
	}
	return host, nil
}

// AddDataFlag adds --data, the data directory, to fs.
func AddDataFlag(fs *pflag.FlagSet, dir *string) {
	fs.StringVar(dir, "data", project.Default().Store.Path,
		"use the data directory `DIR`, which holds the state of the crawl or daemon")
}

// An Env holds what the command of one call of decorum uses.
type Env struct {
	Stdout  *terminal.StickyErrorWriter // standard output
	Stderr  *terminal.StatusLineWriter  // standard error; logs and progress share it
	Signals <-chan os.Signal            // interrupts and SIGTERM
	Hangups <-chan os.Signal            // SIGHUP, unless the process ignored it at its start
	// JSONMessages gets the messages that are no log records, with --log-format json; nil: they are
	// written to Stderr as text.
	JSONMessages *slog.Logger
	engine.Dependencies
}

// WithSignalCancel returns a context that the first signal cancels, with the cause
// engine.ErrInterrupted. The caller must call the returned function, which cancels the context and
// waits for the goroutine that receives signals.
func (e *Env) WithSignalCancel(ctx context.Context) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case <-e.Signals:
			stop(engine.ErrInterrupted)
		case <-e.Hangups:
			stop(engine.ErrInterrupted)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop(nil)
		listening.Wait()
	}
}
