package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/server"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/spf13/cobra"
)

const serveHelp = `Run projects, each from its file NAME.yaml in the folder of project files
(--projects), until a signal ends it. A project file that changes is followed at
once, and no visit is lost; one that makes no sense is not followed, the project
goes on as it was, and the log and the API say why.

A file that is new is a project that is stopped, until somebody starts it (with
--start-new it starts by itself). What was running goes on when the daemon is
started again, and what was paused stays paused. What all projects know of
robots.txt files, and the pace of each host, they share.

The API, and a page for browsers, are served on --listen. Who calls needs a token:
the daemon makes one that may do everything (token) and one that may look
(token-read) at its first start, in the data directory. A project file that comes
by the API names files below --output-root and --files-root only, and reaches into
private networks only with --api-private-networks; one that you put into the folder
by hand may do both.

All state is kept in the data directory (--data). Ctrl-C, or SIGTERM, ends the
daemon when the visits in hand are over; a second one breaks them off.

Exit codes: 1 failed, 2 wrong usage or configuration, 4 ended by a signal.`

const serveExample = `  decorum serve --data /var/lib/decorum --projects /etc/decorum/projects`

// A serveOptions is how a daemon is started.
type serveOptions struct {
	supervisor.Options
	bodyMemory    project.Size
	listenOptions server.ListenOptions
}

func (a *program) newServeCommand() *cobra.Command {
	var s serveOptions
	c := &cobra.Command{
		Use: "serve", Short: "Run projects for months", Long: serveHelp, Example: serveExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
	}
	fs := c.Flags()
	command.AddDataFlag(fs, &s.DataDir)
	fs.StringVar(&s.ProjectFilesDir, "projects", "projects", "the folder `DIR` of project files")
	fs.BoolVar(&s.StartNewProjects, "start-new", false, "start a project when its file is new")
	addBodyMemoryFlag(fs, &s.bodyMemory)
	s.APIProjectRestrictions.AddFlags(fs)
	s.listenOptions.AddFlags(fs)
	c.RunE = func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), s) }
	return c
}

// serve runs a daemon until a signal ends it.
func (a *program) serve(ctx context.Context, s serveOptions) (err error) {
	if err := a.initBodyMemory(s.bodyMemory); err != nil {
		return err
	}
	g, err := server.OpenListeners(ctx, s.listenOptions, a.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	env := a.Dependencies
	env.StandardOutput = a.Stdout.Underlying
	d, err := supervisor.Open(&env, s.Options)
	if err != nil {
		return err
	}
	if err := g.AttachDaemon(d, s.listenOptions); err != nil {
		return errors.Join(err, d.Close())
	}
	a.Log.Info("the daemon runs", "data", string(d.DataDir), "projects", d.ProjectFilesDir, "listen", g.APIListener.Addr().String())
	if err := server.NotifySystemd("READY=1"); err != nil {
		a.Log.Warn("the service manager cannot be told that the daemon is ready", "error", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var background sync.WaitGroup
	background.Go(func() { d.Run(ctx) })
	serveErr := make(chan error, 1)
	background.Go(func() { serveErr <- g.Serve(ctx) })
	var listenerErr error
	select {
	case <-a.Signals:
	case listenerErr = <-serveErr:
	}
	_ = server.NotifySystemd("STOPPING=1") // it sees the end by itself
	shutDownErr := a.shutDown(d)
	stop()
	background.Wait()
	return errors.Join(listenerErr, shutDownErr)
}

// shutDown ends the daemon when the visits in hand are over, or breaks them off at
// the next signal.
func (a *program) shutDown(d *supervisor.Supervisor) error {
	fmt.Fprintln(a.Stderr, "stopping: the visits in hand are finished first; once more breaks them off")
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	for isRepeated := false; ; isRepeated = true {
		select {
		case err := <-closed:
			return errors.Join(err, &command.ExitError{Code: command.ExitStopped, Err: errors.New("ended: nothing is lost, and what ran goes on when the daemon is started again")})
		case <-a.Signals:
			if isRepeated { // a callback does not give way: the state is as safe as after a crash
				os.Exit(command.ExitStopped)
			}
			d.AbortVisits()
		}
	}
}
