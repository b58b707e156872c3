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

const serveHelp = `Run projects until a signal ends the daemon. Each file NAME.yaml in the directory of
project files (--projects) is a project. A change of a project file takes effect at
once, and no visit is lost. An invalid change is not applied: the project continues
with its old settings, and the log and the API give the reason.

A new file adds a stopped project: start it with decorum start, on the web page or
through the API, or let it start at once with --start-new. After a restart of the
daemon, running projects continue and paused projects stay paused. All projects share
the cached robots.txt files and the pace of each host.

The daemon serves its API and a web page on --listen. Callers need a token: at its
first start the daemon writes two into the data directory, token for full access and
token-read for read-only access. A project file that arrives through the API may name
only files below --output-root and --files-root, and may crawl private networks only
with --api-private-networks. Files that you put into the directory yourself have
neither restriction.

The data directory (--data) holds all state. Ctrl-C or SIGTERM ends the daemon after
the visits in flight have finished; a second signal aborts them. At SIGHUP the daemon
reads all project files again, also where the file system does not report changes. A
daemon that nohup starts ignores SIGHUP.

Exit codes: 1 failed, 2 wrong usage or configuration, 4 ended by a signal.`

const serveExample = `  decorum serve --data /var/lib/decorum --projects /etc/decorum/projects`

// A serveOptions holds the flags of decorum serve.
type serveOptions struct {
	supervisor.Options
	bodyMemory    project.Size // bytes; 0: the default of initBodyMemory
	idleConns     int          // see initIdleConns
	listenOptions server.ListenOptions
}

// newServeCommand returns the command decorum serve.
func (a *program) newServeCommand() *cobra.Command {
	var s serveOptions
	c := &cobra.Command{
		Use: "serve", Short: "Run projects for months", Long: serveHelp, Example: serveExample,
		Args: command.ArgsOrUsageError(cobra.NoArgs),
	}
	fs := c.Flags()
	command.AddDataFlag(fs, &s.DataDir)
	fs.StringVar(&s.ProjectFilesDir, "projects", "projects", "read the project files NAME.yaml in the directory `DIR`")
	fs.BoolVar(&s.StartNewProjects, "start-new", false,
		"start each new project at once (default: new projects are stopped)")
	addBodyMemoryFlag(fs, &s.bodyMemory)
	addIdleConnectionsFlag(fs, &s.idleConns)
	s.APIProjectRestrictions.AddFlags(fs)
	s.listenOptions.AddFlags(fs)
	c.RunE = func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), s) }
	return c
}

// serve runs a daemon until a signal arrives or a listener fails. All goroutines that it starts
// have ended when it returns.
func (a *program) serve(ctx context.Context, s serveOptions) (err error) {
	if err := errors.Join(a.initBodyMemory(s.bodyMemory), a.initIdleConns(s.idleConns)); err != nil {
		return err
	}
	// Take the addresses before the state is opened: if one is in use, nothing has changed on disk.
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
	a.Log.Info("the daemon runs", "data", string(d.DataDir), "projects", d.ProjectFilesDir,
		"listen", g.APIListener.Addr().String(), "page", g.LocalURL()+"/",
		"token_file", d.DataDir.Path(server.TokenFile))
	if err := server.NotifySystemd("READY=1"); err != nil {
		a.Log.Warn("cannot notify the service manager that the daemon is ready", "error", err)
	}
	// Run the projects and the listeners until the first signal or the first failure.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var background sync.WaitGroup
	background.Go(func() { d.Run(ctx) })
	background.Go(func() { a.reloadAtHangups(ctx, d) })
	serveErr := make(chan error, 1)
	background.Go(func() { serveErr <- g.Serve(ctx) })
	var listenerErr error
	select {
	case <-a.Signals:
	case listenerErr = <-serveErr:
	}
	_ = server.NotifySystemd("STOPPING=1") // a lost message does no harm: systemd sees the exit
	// The listeners serve until the last visit has ended, so that the shutdown can be watched.
	shutDownErr := a.shutDown(d)
	stop()
	background.Wait()
	if listenerErr != nil {
		return &command.ExitError{Code: command.ExitFailed,
			Err: errors.Join(fmt.Errorf("the daemon cannot listen any more: %w", listenerErr), shutDownErr)}
	}
	return shutDownErr
}

// reloadAtHangups reads the project files of d again at each SIGHUP, until ctx ends.
func (a *program) reloadAtHangups(ctx context.Context, d *supervisor.Supervisor) {
	for {
		select {
		case <-a.Hangups:
		case <-ctx.Done():
			return
		}
		a.Log.Info("SIGHUP: the project files are read again")
		if _, err := d.ReloadProjects(ctx); err != nil { // it logs what becomes of each file
			a.Log.Error("SIGHUP: no project is reloaded", "error", err)
		}
	}
}

// shutDown closes d after the visits in flight have finished. The next signal aborts them, and the
// one after it ends the process at once.
func (a *program) shutDown(d *supervisor.Supervisor) error {
	fmt.Fprintln(a.Stderr, "stopping: the visits in flight finish first; a second signal aborts them")
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	for isRepeated := false; ; isRepeated = true {
		select {
		case err := <-closed:
			return errors.Join(err, &command.ExitError{Code: command.ExitStopped,
				Err: errors.New("ended: nothing is lost, and running projects continue when the daemon starts again")})
		case <-a.Signals:
			if isRepeated { // a callback ignores its context; the state is as safe as after a crash
				os.Exit(command.ExitStopped)
			}
			d.AbortVisits()
		}
	}
}
