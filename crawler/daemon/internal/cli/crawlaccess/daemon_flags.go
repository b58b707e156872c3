package crawlaccess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A DaemonFlags holds the flags that select the daemon a command calls.
type DaemonFlags struct {
	DataDir              string
	serverURL, tokenFile string         // tokenFile empty: DataDir/token
	flagSet              *pflag.FlagSet // tells which flags were given
	dialedAddress        string         // address or socket that NewClient chose, for messages
}

// AddFlags adds --server, --data and --token-file to fs.
func (r *DaemonFlags) AddFlags(fs *pflag.FlagSet) {
	r.flagSet = fs
	fs.StringVar(&r.serverURL, "server", "",
		"call the daemon at `URL`, as "+defaultServer+", instead of the one that runs in --data")
	command.AddDataFlag(fs, &r.DataDir)
	fs.StringVar(&r.tokenFile, "token-file", "", "read the token from `FILE` (default DIR/token)")
}

// defaultServer is the address on which decorum serve listens by default.
const defaultServer = "http://127.0.0.1:8470"

// clientTimeout is how long a client waits for the answer of a daemon, which answers at once unless
// it hangs.
const clientTimeout = 30 * time.Second

// NewClient returns a client of the selected daemon: through the socket of the data directory if no
// flag names an address and a process listens there, else through its address, with its token. The
// data directory may be that of one of the daemon's projects.
func (r *DaemonFlags) NewClient(ctx context.Context) (*api.Client, error) {
	dir := r.daemonDir()
	if !r.isExplicit() {
		if c := r.newSocketClientIfListening(ctx, dir); c != nil {
			c.HTTP.Timeout = clientTimeout
			if !dir.IsDaemonDir() {
				return nil, usage.Errorf("%s is the data directory of a crawl in the foreground, not of a daemon: "+
					"Ctrl-C or SIGTERM stops it, and decorum crawl --resume continues it", dir)
			}
			return c, nil
		}
		if dir.WasUsedButIsIdle() {
			// Any user of the machine may listen at the daemon's address in its place, and would
			// receive the token.
			return nil, fmt.Errorf("no daemon runs in %s: is decorum serve running? "+
				"For another daemon use --data or --server", dir)
		}
	}
	// An address needs a token, which the socket does not.
	r.dialedAddress = r.serverURL
	if !r.hasFlag("server") {
		recorded := dir.DaemonURL()
		if recorded == "" && !r.isExplicit() && dir.IsInUse() {
			// The daemon may have another address than the default one, where any user may listen.
			return nil, fmt.Errorf("the daemon in %s has recorded no address: it may be starting; try again, or name "+
				"its address with --server", dir)
		}
		r.dialedAddress = cmp.Or(recorded, r.serverURL, defaultServer)
	}
	u, err := url.Parse(r.dialedAddress)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage.Errorf("--server: %q is not a URL such as http://127.0.0.1:8470", r.dialedAddress)
	}
	token, err := inputfile.ReadSmall(os.Open, cmp.Or(r.tokenFile, dir.Path("token")))
	if err != nil {
		return nil, usage.Errorf("cannot read the token of the daemon: %w; name its file with --token-file, or the "+
			"daemon's data directory with --data", err)
	}
	return &api.Client{Server: r.dialedAddress, Token: strings.TrimSpace(string(token)),
		HTTP: &http.Client{Timeout: clientTimeout}}, nil
}

// daemonDir returns the data directory, or that of the daemon to which it belongs if it is the directory
// of a project.
func (r *DaemonFlags) daemonDir() datadir.StateDir {
	dir := datadir.StateDir(r.DataDir)
	daemon, _ := dir.DaemonProject()
	return cmp.Or(daemon, dir)
}

// isExplicit reports whether the flags name the daemon's address or its token.
func (r *DaemonFlags) isExplicit() bool {
	return r.hasFlag("server") || r.hasFlag("token-file")
}

// hasFlag reports whether the command line has the flag name.
func (r *DaemonFlags) hasFlag(name string) bool { return r.flagSet == nil || r.flagSet.Changed(name) }

// newSocketClientIfListening returns a client that uses the socket of a directory. It returns
// nil if no process listens there: older daemons have no socket, and some directories cannot
// hold one.
func (r *DaemonFlags) newSocketClientIfListening(ctx context.Context, dir datadir.StateDir) *api.Client {
	c, err := dir.DialSocket(ctx)
	if err != nil {
		return nil
	}
	_ = c.Close() // it only showed that a process listens; the client dials again
	r.dialedAddress = dir.Path(datadir.SocketFile)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dir.DialSocket(ctx) }
	// Every daemon accepts the host name localhost. dial ignores it, so it is never resolved.
	httpClient := &http.Client{Transport: &http.Transport{DialContext: dial}}
	return &api.Client{Server: "http://localhost", HTTP: httpClient}
}

// ExplainError returns err with what the user can do about it: an ExitError with ExitStopped if a
// signal cancelled ctx, advice if no daemon answered, else err itself.
func (r *DaemonFlags) ExplainError(ctx context.Context, err error) error {
	var netErr net.Error
	switch {
	case err != nil && errors.Is(context.Cause(ctx), engine.ErrInterrupted):
		return &command.ExitError{Code: command.ExitStopped, Err: engine.ErrInterrupted}
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no daemon answers at %s: is decorum serve running? For another address use --server: %w",
			r.dialedAddress, err)
	case errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Errorf("the daemon at %s did not answer in time, but may still carry out the call: %w",
			r.dialedAddress, err)
	}
	return err
}
