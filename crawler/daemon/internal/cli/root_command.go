package cli

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/daemonctl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/inspectcmd"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/robotstools"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/transfer"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// Main is the decorum command, with the callbacks of h: it runs what the command
// line asks for, and ends the process.
func Main(h engine.PageHandlerRegistry) {
	TuneGC()
	os.Exit(runCommandLine(h, true, os.Args[1:]))
}

// Run is Main for a program that has more to do: it runs what args ask for, and
// returns the exit code. Interrupts and SIGTERM stop what it runs. The standard
// logger stays the program's own.
func Run(h engine.PageHandlerRegistry, args ...string) int { return runCommandLine(h, false, args) }

// runCommandLine runs what args ask for. own says that the process is all for that.
func runCommandLine(h engine.PageHandlerRegistry, ownsProcess bool, args []string) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	// Whoever reads the output may go away: that is an error of writing, which
	// ends the crawl in order, and not a sudden death.
	brokenPipe := make(chan os.Signal, 1)
	signal.Notify(brokenPipe, syscall.SIGPIPE)
	defer signal.Stop(brokenPipe)
	a := &program{ownsProcess: ownsProcess, Env: command.Env{Stdout: terminal.NewStickyErrorWriter(os.Stdout), Stderr: terminal.NewStatusLineWriter(os.Stderr), Signals: signals, Dependencies: engine.Dependencies{Handlers: h}}}
	return a.main(args)
}

// A program is one call of the command.
type program struct {
	ownsProcess bool // the call is all that the process does
	command.Env
}

// main runs the command line args and returns the exit code.
func (a *program) main(args []string) int {
	root := a.newRootCommand()
	root.SetArgs(args)
	makeBuiltinCommandsStrict(root)
	return command.PrintError(a.Stderr, command.WithWriteError(a.Stdout, root.Execute()))
}

const rootHelp = `decorum is a polite web crawler: no request leaves without two proofs, that
robots.txt allows it and that the host is due.

Exit codes:
  0  done
  1  failed
  2  wrong usage or configuration; nothing was sent
  3  a check says no
  4  stopped by a limit or a signal; the state is kept, and --resume goes on`

// newRootCommand returns the tree of commands.
func (a *program) newRootCommand() *cobra.Command {
	root := command.NewGroup("decorum", "A polite web crawler", rootHelp,
		a.newCrawlCommand(), a.newServeCommand(), a.newDemoCommand(),
		inspectcmd.NewExplainCommand(&a.Env), inspectcmd.NewReportCommand(&a.Env), newFrontierCommand(&a.Env),
		inspectcmd.NewLedgerCommand(&a.Env), robotstools.NewRobotsCommand(&a.Env), robotstools.NewSitemapCommand(&a.Env),
		a.newReplayCommand(), daemonctl.NewBrakeCommand(&a.Env), daemonctl.NewTopCommand(&a.Env),
		a.newIdentityCommand(), a.newVersionCommand())
	root.Example = `  decorum demo
  decorum crawl --contact mailto:you@example.com https://example.com/
  decorum robots check --agent examplebot https://example.com/private/`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := rejectEmptyFlags(c.Flags()); err != nil {
			return err
		}
		return a.initLog(c)
	}
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage.Errorf("%w; see %s --help", err, c.CommandPath())
	})
	root.PersistentFlags().String("log-level", "info", "say `LEVEL` and worse: debug, info, warn or error")
	root.PersistentFlags().String("log-format", "text", "`FORMAT` of log lines: text or json")
	return root
}

const frontierHelp = `Look into the frontier of a crawl, its queues and what it has seen, add to it, and
move it to another store. Nothing is sent.

stats, list and add ask the process that runs the crawl if there is one. For export,
import and compact the crawl must not be running: stop it first, --resume goes on.`

func newFrontierCommand(env *command.Env) *cobra.Command {
	return command.NewGroup("frontier", "Look into a crawl's queues, add to them, move them", frontierHelp,
		inspectcmd.NewFrontierStatsCommand(env), inspectcmd.NewFrontierListCommand(env), transfer.NewAddCommand(env),
		transfer.NewExportCommand(env), transfer.NewImportCommand(env), transfer.NewCompactCommand(env))
}

// makeBuiltinCommandsStrict makes wrong usage of cobra's own commands an error of usage: by themselves
// they take what they do not know for a wish for help.
func makeBuiltinCommandsStrict(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args = command.RejectUnknownCommand
	completion.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	for _, shell := range completion.Commands() {
		shell.Args = command.RejectUnknownCommand
	}
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.RunE = func(_ *cobra.Command, args []string) error {
		c, rest, err := root.Find(args)
		if err != nil {
			return err
		}
		if err := command.RejectUnknownCommand(c, rest); err != nil {
			return err
		}
		c.InitDefaultHelpFlag()
		return c.Help()
	}
}

// rejectEmptyFlags refuses a flag whose value is empty, as that of a variable of a shell may
// be that was never set: to crawl without the project file, or to verify without the
// key, is not what was meant.
func rejectEmptyFlags(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if isEmptyFlagValue(f.Value) {
			err = usage.Errorf("--%s: its value is empty; give it one, or leave the flag out", f.Name)
		}
	})
	return err
}

// isEmptyFlagValue reports whether a flag that was given holds a text without a character.
func isEmptyFlagValue(v pflag.Value) bool {
	if list, ok := v.(interface{ GetSlice() []string }); ok { // a pflag.SliceValue, or the flag of a field
		given := list.GetSlice()
		return len(given) == 0 || slices.Contains(given, "")
	}
	return v.Type() == "string" && v.String() == ""
}

func (a *program) newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.Stdout, "decorum", decorum.Version())
			return err
		},
	}
}

// initLog sets up the log as the flags of the command say.
func (a *program) initLog(c *cobra.Command) error {
	var level slog.Level
	name, _ := c.Flags().GetString("log-level")
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return usage.Errorf("--log-level: %q is not one of debug, info, warn, error", name)
	}
	options := &slog.HandlerOptions{Level: level}
	switch format, _ := c.Flags().GetString("log-format"); format {
	case "text":
		a.Log = slog.New(slog.NewTextHandler(a.Stderr, options))
	case "json":
		a.Log = slog.New(slog.NewJSONHandler(a.Stderr, options))
	default:
		return usage.Errorf("--log-format: %q is not one of text, json", format)
	}
	if a.ownsProcess {
		// What is said by the standard logger is mostly of libraries, net/http's of servers
		// that send what nobody asked for, and no news to an operator; but callbacks may have
		// something to say by it.
		standardLevel := slog.LevelDebug
		if a.Handlers != nil && len(a.Handlers.Names()) > 0 {
			standardLevel = slog.LevelInfo
		}
		slog.SetLogLoggerLevel(standardLevel)
		slog.SetDefault(a.Log)
	}
	return nil
}
