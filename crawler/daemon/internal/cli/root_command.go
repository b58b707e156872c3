package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/completion"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/daemonctl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/inspectcmd"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/manpage"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/projectcmd"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/robotstools"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/transfer"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// Main runs the decorum command with the process's arguments and the callbacks of h, and ends the
// process with the command's exit code. It also limits the process's memory; see LimitMemory.
func Main(h engine.PageHandlerRegistry) {
	LimitMemory()
	os.Exit(runCommandLine(h, true, os.Args[1:]))
}

// Run runs the decorum command with args and the callbacks of h, and returns the exit code. It is
// for programs that do more than this command: unlike Main it leaves the memory limit and the
// standard logger alone. While it runs, interrupts, SIGTERM and SIGHUP stop the command instead of
// the process; decorum serve reloads its project files at SIGHUP. If the process ignores SIGHUP, so
// does the command.
func Run(h engine.PageHandlerRegistry, args ...string) int { return runCommandLine(h, false, args) }

// runCommandLine runs the command line args and returns the exit code. ownsProcess says that the
// process does nothing else, so that the command may redirect the standard logger.
func runCommandLine(h engine.PageHandlerRegistry, ownsProcess bool, args []string) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	hangups := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it, so that the command outlives the terminal
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	// The reader of standard output may exit. With SIGPIPE caught, the next write returns an error,
	// which ends the crawl in order; uncaught, the signal would kill the process.
	brokenPipe := make(chan os.Signal, 1)
	signal.Notify(brokenPipe, syscall.SIGPIPE)
	defer signal.Stop(brokenPipe)
	a := &program{ownsProcess: ownsProcess, Env: command.Env{Stdout: terminal.NewStickyErrorWriter(os.Stdout),
		Stderr: terminal.NewStatusLineWriter(os.Stderr), Signals: signals, Hangups: hangups,
		Dependencies: engine.Dependencies{Handlers: h}}}
	return a.main(args)
}

// A program is one call of the decorum command.
type program struct {
	ownsProcess bool // the process does nothing but this call; see runCommandLine
	quiet       bool // --quiet; see addQuietFlag
	command.Env
}

// main runs the command line args and returns the exit code.
func (a *program) main(args []string) int {
	root := a.newRootCommand()
	root.SetArgs(args)
	makeBuiltinCommandsStrict(root)
	err := rejectHelpOnUnknownCommand(root, args)
	if err == nil {
		err = root.Execute()
	}
	if a.Log == nil && asksForJSONLog(args) { // the error is about the command line
		a.initJSONLog(nil)
	}
	return a.PrintError(command.WithWriteError(a.Stdout, err))
}

// asksForJSONLog reports whether args have --log-format json. It is for command lines that cannot be
// parsed.
func asksForJSONLog(args []string) (isJSON bool) {
	for i, arg := range args {
		if format, ok := strings.CutPrefix(arg, "--log-format="); ok {
			isJSON = format == "json"
		} else if arg == "--log-format" && i+1 < len(args) {
			isJSON = args[i+1] == "json"
		}
	}
	return isJSON
}

const rootHelp = `decorum is a polite web crawler. It sends a request only after two checks: that
robots.txt allows the URL, and that the host is due.

Exit codes:
  0  done; a crawl also where limits.pages (--max-pages) or limits.bytes ends it
  1  failed
  2  wrong usage or configuration; nothing was sent
  3  a check failed
  4  stopped by a signal, by limits.duration (--max-time), or by a reader that closed
     the output of crawl; the state is kept, and --resume continues`

// newRootCommand returns the tree of commands.
func (a *program) newRootCommand() *cobra.Command {
	root := command.NewGroup("decorum", "A polite web crawler", rootHelp,
		a.newCrawlCommand(), a.newServeCommand(), a.newDemoCommand(),
		projectcmd.NewInitCommand(&a.Env), projectcmd.NewCheckCommand(&a.Env),
		inspectcmd.NewExplainCommand(&a.Env), inspectcmd.NewReportCommand(&a.Env), newFrontierCommand(&a.Env),
		inspectcmd.NewLedgerCommand(&a.Env), robotstools.NewRobotsCommand(&a.Env),
		robotstools.NewSitemapCommand(&a.Env),
		a.newReplayCommand(), daemonctl.NewBrakeCommand(&a.Env), daemonctl.NewTopCommand(&a.Env),
		daemonctl.NewTokenCommand(&a.Env),
		a.newIdentityCommand(), a.newVersionCommand(), newManCommand())
	root.AddCommand(daemonctl.NewControlCommands(&a.Env)...)
	root.Example = `  decorum demo
  decorum crawl --contact mailto:you@example.com https://example.com/
  decorum robots check --agent examplebot https://example.com/private/`
	// program.main prints errors itself, in one form and with the exit code that belongs to them.
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := rejectEmptyFlags(c.Flags()); err != nil {
			return err
		}
		return a.initLog(c)
	}
	root.Version = decorum.Version() // SetVersionTemplate would make the program a third larger: see .ci/binary-size
	root.Flags().BoolP("version", "V", false, "print the version")
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage.Errorf("%w%s; see %s --help", err, nearestFlagHint(c, err), c.CommandPath())
	})
	root.PersistentFlags().String("log-level", "info", "log messages of `LEVEL` and above: debug, info, warn or error")
	root.PersistentFlags().String("log-format", "text",
		"write log lines in `FORMAT`: text or json (all of standard error)")
	completion.Register(&a.Env, root)
	return root
}

// nearestFlagHint returns a question that continues err, an error about the flags of c: which flag an unknown
// one misspells; "" if it resembles none.
func nearestFlagHint(c *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return project.DidYouMean(unknown.GetSpecifiedName(), names)
}

const frontierHelp = `Inspect the frontier of a crawl (its queues and the URLs it has seen), add URLs to
it, and move it to another store. These commands send no requests.

stats, list and add call the process that runs the crawl, if one does. For export,
import and compact the crawl must not run: stop it first, and continue it later with
decorum crawl --resume.`

func newFrontierCommand(env *command.Env) *cobra.Command {
	return command.NewGroup("frontier", "Inspect a crawl's queues, add to them, move them", frontierHelp,
		inspectcmd.NewFrontierStatsCommand(env), inspectcmd.NewFrontierListCommand(env), transfer.NewAddCommand(env),
		transfer.NewExportCommand(env), transfer.NewImportCommand(env), transfer.NewCompactCommand(env))
}

// makeBuiltinCommandsStrict makes cobra's own commands, completion and help, return a usage error
// for unknown arguments. Without it they print their help and succeed.
func makeBuiltinCommandsStrict(root *cobra.Command) {
	// cobra adds both commands when the root runs; add them now, so that they can be changed.
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

// rejectHelpOnUnknownCommand returns a usage error if args have --help and name a command that does not
// exist. Without it cobra prints the help of the group and succeeds.
func rejectHelpOnUnknownCommand(root *cobra.Command, args []string) error {
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		return nil // a shell completes a line with --help; cobra adds these commands when the root runs
	}
	// Find takes the word after a help flag for its value, because cobra defines that flag only when the
	// command runs.
	withoutHelp := slices.DeleteFunc(slices.Clone(args), isHelpFlag)
	c, rest, err := root.Find(withoutHelp)
	if err != nil || !c.HasSubCommands() || len(withoutHelp) == len(args) {
		return nil
	}
	if err := c.ParseFlags(rest); err != nil {
		return nil // the command reports it
	}
	return command.RejectUnknownCommand(c, c.Flags().Args())
}

// isHelpFlag reports whether arg is the flag --help or -h, with or without a value.
func isHelpFlag(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return name == "--help" || name == "-h"
}

// rejectEmptyFlags returns a usage error if a flag was given an empty value, for example by a shell
// variable that was never set. The command would otherwise crawl without the project file, or
// verify without the key.
func rejectEmptyFlags(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if isEmptyFlagValue(f.Value) {
			err = usage.Errorf("--%s: its value is empty; give it one, or leave the flag out", f.Name)
		}
	})
	return err
}

// isEmptyFlagValue reports whether v is an empty string, an empty list, or a list that contains an
// empty string.
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

// newManCommand returns the command that packages use to write the man pages. Help does not show it.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the man pages of all commands into a directory", Hidden: true,
		Args: command.ArgsOrUsageError(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return manpage.Write(c.Root(), decorum.Version(), args[0])
		},
	}
}

// initLog sets a.Log from --log-level and --log-format. If the process runs only this command, it
// also sends the standard loggers of log and log/slog there.
func (a *program) initLog(c *cobra.Command) error {
	var level slog.Level
	name, _ := c.Flags().GetString("log-level")
	if a.quiet && !c.Flags().Changed("log-level") {
		name = "warn"
	}
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return usage.Errorf("--log-level: %q is not one of debug, info, warn, error", name)
	}
	options := &slog.HandlerOptions{Level: level}
	switch format, _ := c.Flags().GetString("log-format"); format {
	case "text":
		a.Log = slog.New(slog.NewTextHandler(a.Stderr, options))
	case "json":
		a.initJSONLog(options)
	default:
		return usage.Errorf("--log-format: %q is not one of text, json", format)
	}
	if a.ownsProcess {
		// Most messages of the standard logger come from libraries, such as net/http about
		// unsolicited responses, and do not interest an operator: they are logged as debug. A
		// program with callbacks may log through it on purpose, so there they are logged as info.
		standardLevel := slog.LevelDebug
		if a.Handlers != nil && len(a.Handlers.Names()) > 0 {
			standardLevel = slog.LevelInfo
		}
		slog.SetLogLoggerLevel(standardLevel)
		slog.SetDefault(a.Log)
	}
	return nil
}

// initJSONLog makes every line of standard error a record in JSON. The level of options applies to log
// records only.
func (a *program) initJSONLog(options *slog.HandlerOptions) {
	w := a.Stderr.UseJSON()
	a.Log = slog.New(slog.NewJSONHandler(w, options))
	a.JSONMessages = slog.New(slog.NewJSONHandler(w, nil))
}
