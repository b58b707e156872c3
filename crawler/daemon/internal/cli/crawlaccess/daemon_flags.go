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
	"path/filepath"
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
