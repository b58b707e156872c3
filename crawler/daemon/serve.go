package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

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

// A service is how a daemon is started.
type service struct {
	data, projects string
	startNew       bool
	bodyMemory     Size
	api            apiRules
	doorway        doorway
}

func (a *app) serveCommand() *cobra.Command {
	var s service
	c := &cobra.Command{
		Use: "serve", Short: "Run projects for months", Long: serveHelp, Example: serveExample, Args: args(cobra.NoArgs),
	}
	fs := c.Flags()
	dataFlag(fs, &s.data)
	fs.StringVar(&s.projects, "projects", "projects", "the folder `DIR` of project files")
	fs.BoolVar(&s.startNew, "start-new", false, "start a project when its file is new")
	bodyMemoryFlag(fs, &s.bodyMemory)
	s.api.addFlags(fs)
	s.doorway.addFlags(fs)
	c.RunE = func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), s) }
	return c
}

// serve runs a daemon until a signal ends it.
func (a *app) serve(ctx context.Context, s service) (err error) {
	if err := a.limitBodies(s.bodyMemory); err != nil {
		return err
	}
	g, err := a.listen(ctx, s.doorway)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	d, err := openSupervisor(a, s)
	if err != nil {
		return err
	}
	if err := g.answerFor(d, s.doorway); err != nil {
		return errors.Join(err, d.Close())
	}
	a.log.Info("the daemon runs", "data", string(d.data), "projects", d.folder, "listen", g.api.Addr().String())
	if err := tellSystemd("READY=1"); err != nil {
		a.log.Warn("the service manager cannot be told that the daemon is ready", "error", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { d.run(ctx) })
	unserved := make(chan error, 1)
	beside.Go(func() { unserved <- g.serve(ctx) })
	var failed error
	select {
	case <-a.signals:
	case failed = <-unserved:
	}
	_ = tellSystemd("STOPPING=1") // it sees the end by itself
	end := a.shutDown(d)
	stop()
	beside.Wait()
	return errors.Join(failed, end)
}

// shutDown ends the daemon when the visits in hand are over, or breaks them off at
// the next signal.
func (a *app) shutDown(d *supervisor) error {
	fmt.Fprintln(a.screen, "stopping: the visits in hand are finished first; once more breaks them off")
	over := make(chan error, 1)
	go func() { over <- d.Close() }()
	for once := false; ; once = true {
		select {
		case err := <-over:
			return errors.Join(err, &exit{ExitStopped, errors.New("ended: nothing is lost, and what ran goes on when the daemon is started again")})
		case <-a.signals:
			if once { // a callback does not give way: the state is as safe as after a crash
				os.Exit(ExitStopped)
			}
			d.halt()
		}
	}
}
