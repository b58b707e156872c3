package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// ListenOptions say where a daemon listens, and whom it answers. AddFlags sets them.
type ListenOptions struct {
	addr              string   // HOST:PORT of the API and the page
	certFile, keyFile string   // PEM files; empty: no TLS
	allowPlaintext    bool     // listen on any address without TLS
	tokensFile        string   // a file with further tokens; empty: none
	publicMetrics     bool     // serve /metrics without a token
	allowedHosts      []string // host names that browsers may use for the daemon
	botPageAddr       string   // HOST:PORT of the page about the bot; empty: not served
	listenerConnectionLimits
}

// AddFlags defines the flags that set d.
func (d *ListenOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&d.addr, "listen", "127.0.0.1:8470",
		"serve the API and the page on `ADDR`; addresses other than loopback need TLS")
	fs.StringVar(&d.certFile, "tls-cert", "", "the `FILE` of the certificate, PEM; it is read again when it changes")
	fs.StringVar(&d.keyFile, "tls-key", "", "the `FILE` of its key, PEM")
	fs.BoolVar(&d.allowPlaintext, "insecure", false,
		"listen without TLS on addresses other than loopback; tokens can then be read in transit")
	fs.StringVar(&d.tokensFile, "tokens", "", "a YAML `FILE` of more tokens: a list of name, role (read or operate) "+
		"and sha256 of the token; the audit log records the name")
	fs.BoolVar(&d.publicMetrics, "public-metrics", false, "serve /metrics without a token")
	fs.StringSliceVar(&d.allowedHosts, "host", nil,
		"a host `NAME` that browsers may use for the daemon, in addition to addresses and localhost; repeatable")
	fs.StringVar(&d.botPageAddr, "bot-listen", "", "serve only the page about the bot, without tokens, on `ADDR`")
	d.listenerConnectionLimits.addFlags(fs)
}

// check returns an error of usage for invalid options, and for an address that others can reach without
// TLS, because they could read tokens in transit.
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
		return usage.Errorf("--listen: %s can be reached from elsewhere, and without TLS tokens can be read in "+
			"transit: set --tls-cert and --tls-key, or --insecure if a proxy in front of the daemon does TLS", d.addr)
	}
	return d.listenerConnectionLimits.check()
}

// isLoopbackAddr reports whether only this machine can reach an address.
func isLoopbackAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// openListener opens the listener of the API. tlsConfig is nil if no certificate is configured.
func (d *ListenOptions) openListener(
	ctx context.Context, log *slog.Logger,
) (l net.Listener, tlsConfig *tls.Config, err error) {
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

// listenTCP listens on addr. Errors name the flag that set it.
func listenTCP(ctx context.Context, addr, flag string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, usage.Errorf("%s: %s is in use, by another daemon perhaps: stop it, or name another address", flag,
			addr)
	}
	if err != nil {
		return nil, usage.Errorf("%s: %w", flag, err)
	}
	return l, nil
}
