package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor"
	"github.com/decorum-crawler/decorum/crawler/daemon/page"
	"github.com/decorum-crawler/decorum/internal/connlimit"
)

// A Server serves the API and the page of a daemon and, on a separate address, the page about the bot for
// site owners.
type Server struct {
	log                      *slog.Logger
	APIListener, botListener net.Listener // botListener: nil if the page about the bot is not served
	socketListener           net.Listener // nil: the daemon has no socket
	connectionLimits         listenerConnectionLimits
	tlsConfig                *tls.Config // for APIListener; nil: plain HTTP

	// AttachDaemon sets these.
	auditLog    *api.AuditLog
	apiServer   *api.Server
	daemon      api.Daemon
	pageHandler http.Handler
}

// OpenListeners checks opts and opens the TCP listeners. The caller then opens the daemon and calls
// AttachDaemon and Serve, so that an address in use is reported before any project runs. The caller must
// call Close.
func OpenListeners(ctx context.Context, opts ListenOptions, log *slog.Logger) (*Server, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	g := &Server{log: log, connectionLimits: opts.withDefaults(connlimit.MaxDescriptors())}
	var err error
	if g.APIListener, g.tlsConfig, err = opts.openListener(ctx, log); err != nil {
		return nil, err
	}
	if opts.botPageAddr != "" {
		if g.botListener, err = listenTCP(ctx, opts.botPageAddr, "--bot-listen"); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// AttachDaemon prepares the Server to answer for d. It loads the tokens, creating those of the daemon at
// the first start, and opens the audit log and the socket.
func (g *Server) AttachDaemon(d *supervisor.Supervisor, opts ListenOptions) (err error) {
	keys, err := loadOrCreateDaemonTokens(d.DataDir)
	if err != nil {
		return err
	}
	if opts.tokensFile != "" {
		if keys, err = readTokensFile(opts.tokensFile, keys); err != nil {
			return err
		}
	}
	if g.auditLog, err = api.OpenAuditLog(d.DataDir.Path(datadir.AuditFile), api.AuditRotationLimits{}); err != nil {
		return err
	}
	g.daemon, g.pageHandler = d, page.New(d, g.auditLog)
	g.apiServer = api.NewServer(d, api.ServerConfig{
		RotateToken: func(name string) (api.APIKey, string, error) {
			return rotateDaemonToken(d.DataDir, name, datadir.WriteFileAtomic)
		},
		APIKeys: keys, AuditLog: g.auditLog, PageHandler: g.pageHandler, MetricsHandler: d.Metrics.Handler(),
		PublicMetrics: opts.publicMetrics, AllowedHosts: opts.allowedHosts,
		Version: decorum.Version(), TLS: g.tlsConfig, ConnLimits: g.connectionLimits.Limits, Log: g.log,
	})
	if g.socketListener, err = d.ListenSocket(context.Background()); err != nil {
		// Continue without a socket: some file systems do not support them, and a full disk has no
		// space for one.
		g.log.Warn("the daemon has no socket: commands reach it by --listen, with a token", "error", err)
	}
	d.RecordDaemonURL(g.LocalURL())
	return nil
}

// LocalURL returns the URL of the API and the page for programs of this machine.
func (g *Server) LocalURL() string {
	scheme, addr := "http", g.APIListener.Addr().String()
	if g.tlsConfig != nil {
		scheme = "https"
	}
	if tcp, ok := g.APIListener.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host := "localhost"
		if tcp.IP.To4() != nil {
			host = "127.0.0.1" // at ::1, which localhost may be, another user could listen
		}
		addr = net.JoinHostPort(host, strconv.Itoa(tcp.Port))
	}
	return scheme + "://" + addr
}

// Serve answers requests on all listeners until ctx is done, or until the listener of the API fails. It
// returns when the goroutines that it started have ended.
func (g *Server) Serve(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // without the API, the other listeners end as well
	if g.botListener != nil {
		background.Go(func() { g.serveBotPage(ctx) })
	}
	if g.socketListener != nil {
		background.Go(func() {
			if err := g.apiServer.ServeSocket(ctx, g.socketListener); err != nil {
				g.log.Error("serving the daemon's socket failed", "error", err)
			}
		})
	}
	return g.apiServer.Serve(ctx, g.APIListener)
}

// serveBotPage serves only the page about the bot, and its key directory, until ctx is done.
func (g *Server) serveBotPage(ctx context.Context) {
	h := api.NewHTTPServer(api.BotPageHandler(g.daemon, g.pageHandler), g.log)
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	limits := g.connectionLimits.Limits
	limits.MaxUntrusted = g.connectionLimits.maxBot // site owners have no tokens
	if err := h.Serve(connlimit.New(limits).Listener(g.botListener)); !errors.Is(err, http.ErrServerClosed) {
		g.log.Error("serving the page about the bot failed", "error", err)
	}
}

// Close closes the listeners and the audit log. It may be called with or without a previous Serve.
func (g *Server) Close() (err error) {
	for _, l := range []net.Listener{g.APIListener, g.botListener, g.socketListener} {
		if l != nil {
			if e := l.Close(); !errors.Is(e, net.ErrClosed) {
				err = errors.Join(err, e)
			}
		}
	}
	if g.auditLog != nil {
		err = errors.Join(err, g.auditLog.Close())
	}
	return err
}
