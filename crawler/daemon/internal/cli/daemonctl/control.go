package daemonctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const startHelp = `Start projects of a running daemon, or continue paused ones. The daemon writes the
command to its disk, so that the projects also run after a restart. A project that was
paused at one of its limits (limits.pages, bytes, duration) may visit as much again.

The daemon reads the file of the project again before. If it is invalid, the project
follows its last valid file, and the command prints the errors of the present one.`

const pauseHelp = `Pause running projects of a daemon. Visits in flight finish, and no new one starts. A
paused project stays paused after a restart of the daemon; decorum start continues it.`

const stopHelp = `Stop projects of a daemon. Visits in flight finish, then the daemon closes the state of
the project, which other commands such as decorum frontier export can open then. The
queues, the pages and the file of the project stay; decorum start continues it.`

const reloadHelp = `Make a daemon read its project files again, at once. Usually this is not needed: the
daemon follows changes by itself, except where the file system does not report them.
With PROJECT, print only what became of these projects.

Each line says what became of a file: new, changed, unchanged, gone (the project is
stopped) or refused (the project keeps its last valid file). If a file is refused, the
exit code is 2.`

// A controlOptions holds the flags of the commands that control a daemon.
type controlOptions struct {
	env *command.Env
	crawlaccess.DaemonFlags
	reason string
}

// NewControlCommands returns the commands decorum start, pause, stop and reload.
func NewControlCommands(env *command.Env) []*cobra.Command {
	control := func(action api.ProjectAction, short, long string) *cobra.Command {
		return newControlCommand(env, string(action)+" PROJECT...", short, long, cobra.MinimumNArgs(1),
			func(o *controlOptions, ctx context.Context, names []string) error {
				return o.controlProjects(ctx, action, names)
			})
	}
	return []*cobra.Command{
		control(api.ActionStart, "Start or continue a project of a daemon", startHelp),
		control(api.ActionPause, "Pause a project of a daemon", pauseHelp),
		control(api.ActionStop, "Stop a project of a daemon", stopHelp),
		newControlCommand(env, "reload [PROJECT]...", "Make a daemon read its project files again", reloadHelp,
			cobra.ArbitraryArgs, (*controlOptions).reloadProjects),
	}
}

// newControlCommand returns a command that calls do with the names of projects.
func newControlCommand(env *command.Env, use, short, long string, args cobra.PositionalArgs,
	do func(o *controlOptions, ctx context.Context, names []string) error) *cobra.Command {
	o := controlOptions{env: env}
	name, _, _ := strings.Cut(use, " ")
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Args: command.ArgsOrUsageError(args),
		Example: fmt.Sprintf("  decorum %s books --data /var/lib/decorum/data\n"+
			"  decorum %[1]s books --server https://crawler.example:8470 --token-file token", name),
	}
	o.addFlags(c)
	c.RunE = func(c *cobra.Command, names []string) error {
		ctx, stop := env.WithSignalCancel(c.Context())
		defer stop()
		return o.ExplainError(ctx, do(&o, ctx, names))
	}
	return c
}

// addFlags adds the flags that select a daemon, and --reason.
func (o *controlOptions) addFlags(c *cobra.Command) {
	o.AddFlags(c.Flags())
	c.Flags().StringVar(&o.reason, "reason", "", "record `TEXT` as the reason, in the audit of the daemon")
}

// newClient is NewClient with the reason.
func (o *controlOptions) newClient(ctx context.Context) (*api.Client, error) {
	client, err := o.NewClient(ctx)
	if err == nil {
		client.Reason = o.reason
	}
	return client, err
}

// controlProjects applies action to the projects called names and prints the state of each. It changes
// nothing if the daemon does not know one of them. If it cannot change one, it continues with the others.
func (o *controlOptions) controlProjects(ctx context.Context, action api.ProjectAction, names []string) error {
	client, err := o.newClient(ctx)
	if err != nil {
		return err
	}
	projects, err := client.Projects(ctx)
	if err != nil {
		return err
	}
	known := make([]string, len(projects))
	for i, p := range projects {
		known[i] = p.Name
	}
	if err := crawlaccess.CheckProjectNames(names, known); err != nil {
		return err
	}
	// Change one after the other, and print the state that it has then.
	var errs []error
	for _, name := range names {
		err := client.ControlProject(ctx, name, action)
		if p := (*api.Problem)(nil); errors.As(err, &p) {
			errs = append(errs, err)
			continue
		} else if err != nil {
			return errors.Join(append(errs, err)...)
		}
		p, err := client.Project(ctx, name)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		fmt.Fprintf(o.env.Stdout, "%s: %s\n", name, projectStateText(p, action))
	}
	return errors.Join(errs...)
}

// projectStateText describes the state of a project after action, and why the project is in it.
func projectStateText(p *api.Project, action api.ProjectAction) string {
	text := string(p.State)
	if p.State == api.StatePausing {
		if action == api.ActionStop { // the API has no state of its own for the end of a run that stops
			text = "stopping"
		}
		text += ", when the visits in flight have finished"
	}
	if p.StateReason != "" {
		text += ": " + plaintext.ReplaceNonPrintable(p.StateReason)
	}
	if p.FileError != "" && action == api.ActionStart {
		text += "; it follows its last valid file, because the present one is invalid: " +
			fileErrorText(p.FileError)
	}
	return text
}

// fileErrorText returns the errors of a project file for the terminal, each on a line of its own.
func fileErrorText(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = plaintext.ReplaceNonPrintable(lines[i])
	}
	return strings.Join(lines, "\n  ")
}

// reloadProjects makes the daemon read its project files, and prints the outcome for each project in
// names. If names is empty, it prints the outcome for every project.
func (o *controlOptions) reloadProjects(ctx context.Context, names []string) error {
	client, err := o.newClient(ctx)
	if err != nil {
		return err
	}
	results, err := client.ReloadProjects(ctx)
	if err != nil {
		return err
	}
	known := make([]string, len(results))
	for i, r := range results {
		known[i] = r.Project
	}
	if err := crawlaccess.CheckProjectNames(names, known); err != nil {
		return err
	}
	refused := 0
	for _, r := range results {
		if len(names) > 0 && !slices.Contains(names, r.Project) {
			continue
		}
		text := r.Outcome
		switch text {
		case "none":
			text = "unchanged"
		case "refused":
			refused++
			text += ": " + fileErrorText(r.Error)
		}
		fmt.Fprintf(o.env.Stdout, "%s: %s\n", plaintext.ReplaceNonPrintable(r.Project), text)
	}
	if refused > 0 {
		return usage.Errorf("project files refused: %d; correct them", refused)
	}
	return nil
}
