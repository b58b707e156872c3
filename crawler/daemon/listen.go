package daemon

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
)

// A doorway is where a daemon can be spoken to.
type doorway struct {
	listen        string
	cert, key     string // files; empty: no TLS
	insecure      bool
	tokens        string // a file of more tokens; empty: none
	publicMetrics bool
	hosts         []string // names that browsers may call it by
	bot           string   // where site owners read about the crawler; empty: nowhere
	connections
}

func (d *doorway) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&d.listen, "listen", "127.0.0.1:8470", "serve the API and the page on `ADDR`; other addresses than loopback need TLS")
	fs.StringVar(&d.cert, "tls-cert", "", "the `FILE` of the certificate, PEM; it is read again when it changes")
	fs.StringVar(&d.key, "tls-key", "", "the `FILE` of its key, PEM")
	fs.BoolVar(&d.insecure, "insecure", false, "listen on other addresses than loopback without TLS: tokens can be read on the way")
	fs.StringVar(&d.tokens, "tokens", "", "a YAML `FILE` of more tokens: a list of name, role (read or operate) and sha256 of the token; the audit names who")
	fs.BoolVar(&d.publicMetrics, "public-metrics", false, "let anybody read /metrics")
	fs.StringSliceVar(&d.hosts, "host", nil, "a `NAME` that browsers may call the daemon by, beside addresses and localhost; repeatable")
	fs.StringVar(&d.bot, "bot-listen", "", "serve the page about the bot, and nothing else, to anybody on `ADDR`")
	d.connections.addFlags(fs)
}

// check refuses what makes no sense, and what would let others listen in.
func (d *doorway) check() error {
	_, _, err := net.SplitHostPort(d.listen)
	unknown := slices.IndexFunc(d.hosts, func(h string) bool {
		_, ok := hostName(h)
		return !ok
	})
	switch {
	case err != nil:
		return usage("--listen: %q is not HOST:PORT (IPv6 addresses in brackets)", d.listen)
	case unknown >= 0:
		return usage("--host: %q is not the name of a host, as in crawler.example.com", d.hosts[unknown])
	case (d.cert == "") != (d.key == ""):
		return usage("--tls-cert and --tls-key go together")
	case d.cert == "" && !d.insecure && !isLoopback(d.listen):
		return usage("--listen: %s can be reached from elsewhere, and without TLS tokens can be read on the way: set --tls-cert and --tls-key, or --insecure if something in front of it does TLS", d.listen)
	}
	return d.connections.check()
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// open listens for calls. With a certificate they come by TLS, as secured says;
// without one that is nil.
func (d *doorway) open(ctx context.Context, log *slog.Logger) (l net.Listener, secured *tls.Config, err error) {
	if d.cert != "" {
		certs := &certificate{cert: d.cert, key: d.key, log: log}
		if _, err := certs.get(nil); err != nil {
			return nil, nil, usage("--tls-cert: %w", err)
		}
		secured = &tls.Config{GetCertificate: certs.get, MinVersion: tls.VersionTLS12}
	}
	l, err = listenOn(ctx, d.listen, "--listen")
	return l, secured, err
}

// listenOn listens on an address that a flag names.
func listenOn(ctx context.Context, addr, flag string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, usage("%s: %s is in use, by another daemon perhaps: stop it, or name another address", flag, addr)
	}
	if err != nil {
		return nil, usage("%s: %w", flag, err)
	}
	return l, nil
}

// A certificate is read anew when its file has changed, so that it can be renewed
// while the daemon runs.
type certificate struct {
	cert, key string
	log       *slog.Logger
	mu        sync.Mutex
	read      *tls.Certificate
	of        time.Time // when the file was changed that was read
	trouble   string    // why what is there now cannot be read; empty: it can
}

// get returns the certificate. While the files cannot be read, or do not go
// together because one of them is being replaced, it is the one before, and the log
// says why, once.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.cert)
	if err == nil && c.read != nil && info.ModTime().Equal(c.of) {
		return c.read, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.cert, c.key)
	}
	switch {
	case err == nil:
		c.read, c.of, c.trouble = &pair, info.ModTime(), ""
	case c.read == nil:
		return nil, err
	case c.trouble != err.Error():
		c.trouble = err.Error()
		c.log.Warn("the new certificate cannot be read: the one before is used on", "expires", c.read.Leaf.NotAfter, "error", err)
	}
	return c.read, nil
}
