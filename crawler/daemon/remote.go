package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A remote is the daemon that a command speaks to.
type remote struct {
	server, data, tokenFile string
	flags                   *pflag.FlagSet
	place                   string // where client found the daemon
}

func (r *remote) addFlags(fs *pflag.FlagSet) {
	r.flags = fs
	fs.StringVar(&r.server, "server", defaultServer,
		"the daemon at `URL`; without it and --token-file, the daemon of --data by its socket, DIR/socket")
	dataFlag(fs, &r.data)
	fs.StringVar(&r.tokenFile, "token-file", "", "the `FILE` that holds the token (default DIR/token)")
}

const defaultServer = "http://127.0.0.1:8470"

// answerTime is for how long a daemon is waited for: it answers at once, or hangs.
const answerTime = 30 * time.Second

// client returns a client of the daemon.
func (r *remote) client(ctx context.Context) (*api.Client, error) {
	if c := r.socketClient(ctx); c != nil {
		return c, nil
	}
	if !r.isNamed() && stateDir(r.data).isIdle() {
		// Any user of the machine may listen at the default address in the daemon's
		// place, and would receive the token.
		return nil, fmt.Errorf("no daemon runs in %s: is decorum serve running? --server names another place", r.data)
	}
	r.place = r.server
	u, err := url.Parse(r.server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage("--server: %q is not a URL such as http://127.0.0.1:8470", r.server)
	}
	file := r.tokenFile
	if file == "" {
		file = filepath.Join(r.data, "token")
	}
	token, err := readSmall(nil, file)
	if err != nil {
		return nil, usage("cannot read the token of the daemon: %w; name its file with --token-file, or the daemon's directory with --data", err)
	}
	return &api.Client{Server: r.server, Token: strings.TrimSpace(string(token)), HTTP: &http.Client{Timeout: answerTime}}, nil
}

// isNamed reports whether the flags name the daemon's address or its token.
func (r *remote) isNamed() bool {
	return r.flags == nil || r.flags.Changed("server") || r.flags.Changed("token-file")
}

// socketClient returns a client that uses the daemon's socket. It returns nil if the
// flags name another way, or if no daemon listens there: older daemons have no socket,
// and some directories cannot hold one.
func (r *remote) socketClient(ctx context.Context) *api.Client {
	if r.isNamed() {
		return nil
	}
	dir := stateDir(r.data)
	c, err := dir.dialSocket(ctx)
	if err != nil {
		return nil
	}
	_ = c.Close() // the connection only showed that a daemon listens
	r.place = dir.path(socketFile)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dir.dialSocket(ctx) }
	// The host is one by which every daemon may be called; it is not looked up.
	caller := &http.Client{Timeout: answerTime, Transport: &http.Transport{DialContext: dial}}
	return &api.Client{Server: "http://localhost", HTTP: caller}
}

// explained says what to do where no daemon answers, or that a signal ended the call.
func (r *remote) explained(ctx context.Context, err error) error {
	var failed net.Error
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errSignal):
		return &exit{ExitStopped, errSignal}
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no daemon answers at %s: is decorum serve running? --server names another place: %w", r.place, err)
	case errors.As(err, &failed) && failed.Timeout():
		return fmt.Errorf("the daemon at %s has not answered, but may still carry out the call: %w", r.place, err)
	}
	return err
}
