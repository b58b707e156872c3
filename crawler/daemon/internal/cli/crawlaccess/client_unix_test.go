//go:build unix

package crawlaccess

import (
	"net"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/server"
)

// While a daemon does not run, a command never sends its token to the process that listens at the
// default address.
func TestTokenOfAnIdleDaemonStays(t *testing.T) {
	dir := datadir.StateDir(t.TempDir())
	lock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteFileAtomic(dir.Path(server.TokenFile), []byte("secret")); err != nil {
		t.Fatal(err)
	}
	r := DaemonFlags{serverURL: defaultServer, DataDir: string(dir), flagSet: newDaemonFlagSet()}
	if c, err := r.NewClient(t.Context()); err == nil || !strings.Contains(err.Error(), "recorded no address") {
		t.Errorf("before it listens: %+v, %v; want an error", c, err)
	}
	lock.RecordDaemonURL(defaultServer)
	if c, err := r.NewClient(t.Context()); err != nil || c.Token != "secret" {
		t.Errorf("while it runs without a socket: %+v, %v", c, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := r.NewClient(t.Context()); err == nil || !strings.Contains(err.Error(), "decorum serve") {
		t.Errorf("when it has ended: %+v, %v; want an error that says what to do", c, err)
	}
}

// A command with --server or --token-file uses TCP. So does a command that finds no listener at the
// socket, because some directories cannot hold one.
func TestWithoutSocket(t *testing.T) {
	t.Parallel()
	const tcp = "http://127.0.0.1:1"
	dir := datadir.StateDir(t.TempDir())
	lock, err := dir.Lock() // as a daemon without a socket does
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := datadir.WriteFileAtomic(dir.Path(server.TokenFile), []byte("secret")); err != nil {
		t.Fatal(err)
	}
	const daemonURL = "http://127.0.0.1:2"
	lock.RecordDaemonURL(daemonURL)
	for what, make := range map[string]func() error{
		"no socket": func() error { return nil },
		"the socket of a daemon that was killed": func() error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir.Path(datadir.SocketFile)})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return l.Close()
		},
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		r := DaemonFlags{serverURL: tcp, DataDir: string(dir)}
		r.flagSet = newDaemonFlagSet()
		c, err := r.NewClient(t.Context())
		if err != nil || c.Token != "secret" {
			t.Errorf("%s: the client is %+v, %v; want one that uses the token", what, c, err)
		}
	}
	// The daemon has recorded its address, which is then used instead of the default one. The flag
	// --server overrides it.
	r := DaemonFlags{serverURL: tcp, DataDir: string(dir), flagSet: newDaemonFlagSet()}
	if c, err := r.NewClient(t.Context()); err != nil || c.Server != daemonURL || c.Token != "secret" {
		t.Errorf("the client is %+v, %v; want one that calls %s", c, err, daemonURL)
	}
	l, err := lock.ListenSocket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, flag := range []string{"--server=" + tcp, "--token-file=" + dir.Path(server.TokenFile)} {
		fs := newDaemonFlagSet()
		r := DaemonFlags{serverURL: tcp, DataDir: string(dir), tokenFile: dir.Path(server.TokenFile), flagSet: fs}
		if err := fs.Parse([]string{flag}); err != nil {
			t.Fatal(err)
		}
		c, err := r.NewClient(t.Context())
		if err != nil || c.Token != "secret" {
			t.Errorf("%s: the client is %+v, %v; want one that uses the token", flag, c, err)
		} else if want := map[bool]string{true: tcp, false: daemonURL}[fs.Changed("server")]; c.Server != want {
			t.Errorf("%s: the client calls %s, want %s", flag, c.Server, want)
		}
	}
	// A killed daemon has left its address: another user may listen there since.
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if u := dir.DaemonURL(); u != "" {
		t.Errorf("without a daemon, its address is %s; want none", u)
	}
}

// newDaemonFlagSet returns the flags of DaemonFlags, none of them set.
func newDaemonFlagSet() *pflag.FlagSet {
	fs := pflag.NewFlagSet("brake", pflag.ContinueOnError)
	new(DaemonFlags).AddFlags(fs)
	return fs
}
