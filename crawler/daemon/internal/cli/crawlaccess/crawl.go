package crawlaccess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A CrawlFlags says which crawl a command looks into: that of a directory, or a project of a
// daemon. It says also in which format the command answers.
type CrawlFlags struct {
	DaemonFlags
	Env     *command.Env
	Format  string
	project string // of a daemon; empty: its only one
}

// AddFlags adds the flags to those of c, which answers in one of formats.
func (f *CrawlFlags) AddFlags(env *command.Env, c *cobra.Command, formats ...string) {
	fs := c.Flags()
	f.Env, f.flagSet = env, fs
	command.AddFormatFlag(c, &f.Format, formats...)
	command.AddDataFlag(fs, &f.DataDir)
	fs.StringVar(&f.project, "project", "", "the project `NAME`, where --data or --server is a daemon's that has several")
	fs.StringVar(&f.serverURL, "server", "", "ask the daemon at `URL`, as http://127.0.0.1:8470, instead of that of --data")
	fs.StringVar(&f.tokenFile, "token-file", "", "the `FILE` that holds the token for --server (default DIR/token)")
}

// NamesDaemon reports whether the flags name a daemon, or a project of one.
func (f *CrawlFlags) NamesDaemon() bool { return f.isExplicit() || f.project != "" }

// Place names the crawl for people.
func (f *CrawlFlags) Place() string {
	return cmp.Or(f.serverURL, f.DataDir)
}

// Do calls do with an Inspector of the crawl, until a signal ends that: of the process that
// runs the crawl if there is one, else of the crawl's files, which are locked meanwhile.
func (f *CrawlFlags) Do(ctx context.Context, do func(context.Context, api.Inspector) error) error {
	inspector, dir, err := f.FindRunning(ctx)
	if err != nil {
		return f.ExplainError(ctx, err)
	}
	if inspector == nil {
		return stoppedcrawl.OpenAndDo(ctx, f.Env, string(dir), func(ctx context.Context, k *stoppedcrawl.Crawl) error { return do(ctx, k) })
	}
	ctx, stop := f.Env.WithSignalCancel(ctx)
	defer stop()
	return f.ExplainError(ctx, do(ctx, inspector))
}

// FindRunning returns an Inspector of the process that runs the crawl, or nil and the
// directory of the crawl.
func (f *CrawlFlags) FindRunning(ctx context.Context) (i api.Inspector, dir datadir.StateDir, err error) {
	if f.isExplicit() {
		f.serverURL = cmp.Or(f.serverURL, defaultServer)
		client, err := f.NewClient(ctx)
		if err != nil {
			return nil, "", err
		}
		client.HTTP.Timeout = 0 // an answer may be long
		name, err := f.projectOf(ctx, client)
		return client.Crawl(name), "", err
	}
	dir = datadir.StateDir(f.DataDir)
	daemon, isProject := dir.DaemonDir()
	switch {
	case dir.IsDaemonDir():
		daemon = dir
	case f.project != "":
		return nil, "", usage.Errorf("--project: %s is not the directory of a daemon", dir)
	case isProject:
		f.project = dir.BaseName()
	default: // a crawl's own
		if client := f.newSocketClientIfListening(ctx, dir); client != nil {
			return client.Crawl(api.CrawlName), "", nil
		}
		return nil, dir, nil
	}
	if client := f.newSocketClientIfListening(ctx, daemon); client != nil {
		name, err := f.projectOf(ctx, client)
		return client.Crawl(name), "", err
	}
	dirs, err := daemon.ProjectDirs()
	if err != nil {
		return nil, "", err
	}
	name, err := f.chooseProject(slices.Sorted(maps.Keys(dirs)))
	return nil, dirs[name], err
}

// projectOf returns the name of the project of a daemon that is meant.
func (f *CrawlFlags) projectOf(ctx context.Context, client *api.Client) (string, error) {
	if f.project != "" {
		return f.project, nil
	}
	projects, err := client.Projects(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range projects {
		names = append(names, p.Name)
	}
	return f.chooseProject(names)
}

// chooseProject returns the project that is meant, of those that a daemon has.
func (f *CrawlFlags) chooseProject(names []string) (string, error) {
	switch {
	case f.project != "" && slices.Contains(names, f.project):
		return f.project, nil
	case f.project != "":
		return "", usage.Errorf("--project: the daemon has no project %s", f.project)
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", usage.Errorf("the daemon has no project yet")
	}
	return "", usage.Errorf("the daemon has %d projects: name one with --project: %s", len(names), strings.Join(names, ", "))
}

// A DaemonFlags says which daemon a command speaks to.
type DaemonFlags struct {
	DataDir              string
	serverURL, tokenFile string
	flagSet              *pflag.FlagSet
	dialedAddress        string // where NewClient found the daemon
}

// AddFlags adds the flags to those of a command.
func (r *DaemonFlags) AddFlags(fs *pflag.FlagSet) {
	r.flagSet = fs
	fs.StringVar(&r.serverURL, "server", defaultServer,
		"the daemon at `URL`; without it and --token-file, the daemon of --data by its socket, DIR/socket")
	command.AddDataFlag(fs, &r.DataDir)
	fs.StringVar(&r.tokenFile, "token-file", "", "the `FILE` that holds the token (default DIR/token)")
}

const defaultServer = "http://127.0.0.1:8470"

// clientTimeout is for how long a daemon is waited for: it answers at once, or hangs.
const clientTimeout = 30 * time.Second

// NewClient returns a client of the daemon.
func (r *DaemonFlags) NewClient(ctx context.Context) (*api.Client, error) {
	if dir := datadir.StateDir(r.DataDir); !r.isExplicit() {
		if c := r.newSocketClientIfListening(ctx, dir); c != nil {
			c.HTTP.Timeout = clientTimeout
			return c, nil
		}
		if dir.WasUsedButIsIdle() {
			// Any user of the machine may listen at the default address in the daemon's
			// place, and would receive the token.
			return nil, fmt.Errorf("no daemon runs in %s: is decorum serve running? --server names another place", dir)
		}
	}
	r.dialedAddress = r.serverURL
	u, err := url.Parse(r.serverURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage.Errorf("--server: %q is not a URL such as http://127.0.0.1:8470", r.serverURL)
	}
	token, err := inputfile.ReadSmall(os.Open, cmp.Or(r.tokenFile, filepath.Join(r.DataDir, "token")))
	if err != nil {
		return nil, usage.Errorf("cannot read the token of the daemon: %w; name its file with --token-file, or the daemon's directory with --data", err)
	}
	return &api.Client{Server: r.serverURL, Token: strings.TrimSpace(string(token)), HTTP: &http.Client{Timeout: clientTimeout}}, nil
}

// isExplicit reports whether the flags name the daemon's address or its token.
func (r *DaemonFlags) isExplicit() bool {
	return r.flagSet == nil || r.flagSet.Changed("server") || r.flagSet.Changed("token-file")
}

// newSocketClientIfListening returns a client that uses the socket of a directory. It returns
// nil if no process listens there: older daemons have no socket, and some directories cannot
// hold one.
func (r *DaemonFlags) newSocketClientIfListening(ctx context.Context, dir datadir.StateDir) *api.Client {
	c, err := dir.DialSocket(ctx)
	if err != nil {
		return nil
	}
	_ = c.Close() // the connection only showed that a process listens
	r.dialedAddress = dir.Path(datadir.SocketFile)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dir.DialSocket(ctx) }
	// The host is one by which every daemon may be called; it is not looked up.
	httpClient := &http.Client{Transport: &http.Transport{DialContext: dial}}
	return &api.Client{Server: "http://localhost", HTTP: httpClient}
}

// ExplainError says what to do where no daemon answers, or that a signal ended the call.
func (r *DaemonFlags) ExplainError(ctx context.Context, err error) error {
	var netErr net.Error
	switch {
	case err != nil && errors.Is(context.Cause(ctx), engine.ErrInterrupted):
		return &command.ExitError{Code: command.ExitStopped, Err: engine.ErrInterrupted}
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no daemon answers at %s: is decorum serve running? --server names another place: %w", r.dialedAddress, err)
	case errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Errorf("the daemon at %s has not answered, but may still carry out the call: %w", r.dialedAddress, err)
	}
	return err
}
