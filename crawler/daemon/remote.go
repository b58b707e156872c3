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
type remote struct{ server, data, tokenFile string }

func (r *remote) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.server, "server", "http://127.0.0.1:8470", "the daemon at `URL`")
	dataFlag(fs, &r.data)
	fs.StringVar(&r.tokenFile, "token-file", "", "the `FILE` that holds the token (default DIR/token)")
}

// answerTime is for how long a daemon is waited for: it answers at once, or hangs.
const answerTime = 30 * time.Second

// client returns a client of the daemon.
func (r *remote) client() (*api.Client, error) {
	u, err := url.Parse(r.server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage("--server: %q is not a URL such as http://127.0.0.1:8470", r.server)
	}
	file := r.tokenFile
	if file == "" {
		file = filepath.Join(r.data, "token")
	}
	token, err := readSmall(file)
	if err != nil {
		return nil, usage("cannot read the token of the daemon: %w; name its file with --token-file, or the daemon's directory with --data", err)
	}
	return &api.Client{Server: r.server, Token: strings.TrimSpace(string(token)), HTTP: &http.Client{Timeout: answerTime}}, nil
}

// explained says what to do where no daemon answers, or that a signal ended the call.
func (r *remote) explained(ctx context.Context, err error) error {
	var failed net.Error
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errSignal):
		return &exit{ExitStopped, errSignal}
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no daemon answers at %s: is decorum serve running? --server names another place: %w", r.server, err)
	case errors.As(err, &failed) && failed.Timeout():
		return fmt.Errorf("the daemon at %s has not answered, and may do all the same what it was asked for: %w", r.server, err)
	}
	return err
}
