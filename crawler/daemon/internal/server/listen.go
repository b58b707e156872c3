package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/connlimit"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A ListenOptions is where a daemon can be spoken to.
type ListenOptions struct {
	addr              string
	certFile, keyFile string // files; empty: no TLS
	allowPlaintext    bool
	tokensFile        string // a file of more tokens; empty: none
	publicMetrics     bool
	allowedHosts      []string // names that browsers may call it by
	botPageAddr       string   // where site owners read about the crawler; empty: nowhere
	listenerConnectionLimits
}

func (d *ListenOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&d.addr, "listen", "127.0.0.1:8470", "serve the API and the page on `ADDR`; other addresses than loopback need TLS")
	fs.StringVar(&d.certFile, "tls-cert", "", "the `FILE` of the certificate, PEM; it is read again when it changes")
	fs.StringVar(&d.keyFile, "tls-key", "", "the `FILE` of its key, PEM")
	fs.BoolVar(&d.allowPlaintext, "insecure", false, "listen on other addresses than loopback without TLS: tokens can be read on the way")
	fs.StringVar(&d.tokensFile, "tokens", "", "a YAML `FILE` of more tokens: a list of name, role (read or operate) and sha256 of the token; the audit names who")
	fs.BoolVar(&d.publicMetrics, "public-metrics", false, "let anybody read /metrics")
	fs.StringSliceVar(&d.allowedHosts, "host", nil, "a `NAME` that browsers may call the daemon by, beside addresses and localhost; repeatable")
	fs.StringVar(&d.botPageAddr, "bot-listen", "", "serve the page about the bot, and nothing else, to anybody on `ADDR`")
	d.listenerConnectionLimits.addFlags(fs)
}

// check refuses what makes no sense, and what would let others listen in.
func (d *ListenOptions) check() error {
	_, _, err := net.SplitHostPort(d.addr)
	badHost := slices.IndexFunc(d.allowedHosts, func(h string) bool {
		_, ok := project.CanonicalHost(h)
		return !ok
	})
	switch {
	case err != nil:
		return usage.Errorf("--listen: %q is not HOST:PORT (IPv6 addresses in brackets)", d.addr)
	case badHost >= 0:
		return usage.Errorf("--host: %q is not the name of a host, as in crawler.example.com", d.allowedHosts[badHost])
	case (d.certFile == "") != (d.keyFile == ""):
		return usage.Errorf("--tls-cert and --tls-key go together")
	case d.certFile == "" && !d.allowPlaintext && !isLoopbackAddr(d.addr):
		return usage.Errorf("--listen: %s can be reached from elsewhere, and without TLS tokens can be read on the way: set --tls-cert and --tls-key, or --insecure if something in front of it does TLS", d.addr)
	}
	return d.listenerConnectionLimits.check()
}

// isLoopbackAddr reports whether only this machine can reach an address.
func isLoopbackAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// openListener listens for calls. With a certificate they come by TLS, as secured says;
// without one that is nil.
func (d *ListenOptions) openListener(ctx context.Context, log *slog.Logger) (l net.Listener, tlsConfig *tls.Config, err error) {
	if d.certFile != "" {
		certs := &reloadingCertificate{certFile: d.certFile, keyFile: d.keyFile, log: log}
		if _, err := certs.currentCertificate(nil); err != nil {
			return nil, nil, usage.Errorf("--tls-cert: %w", err)
		}
		tlsConfig = &tls.Config{GetCertificate: certs.currentCertificate, MinVersion: tls.VersionTLS12}
	}
	l, err = listenTCP(ctx, d.addr, "--listen")
	return l, tlsConfig, err
}

// listenTCP listens on an address that a flag names.
func listenTCP(ctx context.Context, addr, flag string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, usage.Errorf("%s: %s is in use, by another daemon perhaps: stop it, or name another address", flag, addr)
	}
	if err != nil {
		return nil, usage.Errorf("%s: %w", flag, err)
	}
	return l, nil
}

// A reloadingCertificate is read anew when its file has changed, so that it can be renewed
// while the daemon runs.
type reloadingCertificate struct {
	certFile, keyFile string
	log               *slog.Logger
	mu                sync.Mutex
	loaded            *tls.Certificate
	loadedModTime     time.Time // when the file was changed that was read
	lastError         string    // why what is there now cannot be read; empty: it can
}

// currentCertificate returns the certificate. While the files cannot be read, or do not go
// together because one of them is being replaced, it is the one before, and the log
// says why, once.
func (c *reloadingCertificate) currentCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.certFile)
	if err == nil && c.loaded != nil && info.ModTime().Equal(c.loadedModTime) {
		return c.loaded, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	switch {
	case err == nil:
		c.loaded, c.loadedModTime, c.lastError = &pair, info.ModTime(), ""
	case c.loaded == nil:
		return nil, err
	case c.lastError != err.Error():
		c.lastError = err.Error()
		c.log.Warn("the new certificate cannot be read: the one before is used on", "expires", c.loaded.Leaf.NotAfter, "error", err)
	}
	return c.loaded, nil
}

// listenerConnectionLimits are the limits on the connections of a daemon's listeners. The defaults
// leave most of the descriptors of the process to the crawl.
type listenerConnectionLimits struct {
	connlimit.Limits     // of the listener of the API
	maxBot           int // the same as MaxUntrusted, of the listener for site owners
}

func (c *listenerConnectionLimits) addFlags(fs *pflag.FlagSet) {
	fs.IntVar(&c.MaxTrusted, "connections", 0,
		"keep `N` connections of callers with a token open (0: 4096, but a quarter of the open files allowed at most)")
	fs.IntVar(&c.MaxUntrusted, "stranger-connections", 0,
		"keep `N` connections of callers without a token open; a new one closes the one that has been idle longest "+
			"(0: 1024, but an eighth of the open files allowed at most)")
	fs.IntVar(&c.maxBot, "bot-connections", 0,
		"the same for --bot-listen: `N` connections (0: 512, but a sixteenth of the open files allowed at most)")
	fs.IntVar(&c.MaxUntrustedPerNetwork, "connections-per-address", 64,
		"keep `N` connections without a token open from one address, of IPv6 one /64; raise it behind a reverse proxy")
	c.UntrustedRequestTimeout = 10 * time.Second
	fs.Var(DurationFlag{(*project.Duration)(&c.UntrustedRequestTimeout)}, "stranger-time",
		"close a connection without a token that sends no request for `TIME`")
}

// check refuses limits that cannot work.
func (c *listenerConnectionLimits) check() error {
	for flag, n := range map[string]int{"connections": c.MaxTrusted, "stranger-connections": c.MaxUntrusted,
		"bot-connections": c.maxBot, "connections-per-address": c.MaxUntrustedPerNetwork, "stranger-time": int(c.UntrustedRequestTimeout)} {
		if n < 0 {
			return usage.Errorf("--%s: it must not be negative", flag)
		}
	}
	maxFiles := maxDescriptors()
	effective := c.withDefaults(maxFiles)
	if sum := uint64(effective.MaxTrusted + effective.MaxUntrusted + effective.maxBot); maxFiles > 0 && sum > maxFiles/2 {
		return usage.Errorf("--connections, --stranger-connections and --bot-connections come to %d, "+
			"and the process may have %d files open, half of which the crawl needs: "+
			"set lower limits, or allow more files (ulimit -n, LimitNOFILE)", sum, maxFiles)
	}
	return nil
}

// withDefaults returns the limits for a process that may open so many files; 0 means
// unlimited.
func (c *listenerConnectionLimits) withDefaults(maxFiles uint64) listenerConnectionLimits {
	effective := *c
	for _, l := range []struct {
		limit    *int
		standard int // of processes with enough descriptors
		share    uint64
	}{{&effective.MaxTrusted, 4096, 4}, {&effective.MaxUntrusted, 1024, 8}, {&effective.maxBot, 512, 16}} {
		if *l.limit != 0 {
			continue
		}
		*l.limit = l.standard
		if maxFiles > 0 {
			*l.limit = int(max(1, min(uint64(l.standard), maxFiles/l.share)))
		}
	}
	return effective
}

// A DurationFlag is a flag of a duration as project files have them.
type DurationFlag struct{ *project.Duration }

// Set is part of pflag.Value.
func (t DurationFlag) Set(text string) error { return t.UnmarshalText([]byte(text)) }

// String is part of pflag.Value: no default is shown.
func (t DurationFlag) String() string {
	if t.Duration == nil || *t.Duration == 0 {
		return ""
	}
	return t.Duration.String()
}

// Type is part of pflag.Value.
func (t DurationFlag) Type() string { return "TIME" }
