package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/page"
	"github.com/decorum-crawler/decorum/internal/connlimit"
)

// A gateway is where a daemon is spoken to: by its API and its page, and, on an
// address of its own, by site owners who want to know what the bot is.
type gateway struct {
	app      *app
	api, bot net.Listener // bot: nil if there is none
	socket   net.Listener // nil: the daemon has no socket
	limits   connections
	tls      *tls.Config // of api; nil: plain HTTP
	audit    *api.AuditLog
	server   *api.Server
	daemon   api.Daemon
	page     http.Handler
}

// listen opens the doors, behind which nobody answers yet.
func (a *app) listen(ctx context.Context, way doorway) (*gateway, error) {
	if err := way.check(); err != nil {
		return nil, err
	}
	g := &gateway{app: a, limits: way.connections}
	var err error
	if g.api, g.tls, err = way.open(ctx, a.log); err != nil {
		return nil, err
	}
	if way.bot != "" {
		if g.bot, err = listenOn(ctx, way.bot, "--bot-listen"); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// answerFor has the daemon answer.
func (g *gateway) answerFor(d *supervisor, way doorway) (err error) {
	keys, err := openKeys(d.data)
	if err != nil {
		return err
	}
	if way.tokens != "" {
		if keys, err = readTokens(way.tokens, keys); err != nil {
			return err
		}
	}
	if g.audit, err = api.OpenAuditLog(d.data.path(auditFile), api.AuditRotation{}); err != nil {
		return err
	}
	g.daemon, g.page = d, page.New(d, g.audit)
	g.server = api.NewServer(d, api.Config{
		APIKeys: keys, Audit: g.audit, PageHandler: g.page, MetricsHandler: d.metrics.Handler(), PublicMetrics: way.publicMetrics, AllowedHosts: way.hosts,
		Version: decorum.Version(), TLS: g.tls, ConnLimits: way.connections.ofAPI(), Log: g.app.log,
	})
	if g.socket, err = d.data.listenSocket(context.Background()); err != nil {
		// Some file systems do not support sockets, and a full disk has no room for
		// one.
		g.app.log.Warn("the daemon has no socket: commands reach it by --listen, with a token", "error", err)
	}
	d.hasSocket = g.socket != nil
	return nil
}

// serve answers until ctx is done.
func (g *gateway) serve(ctx context.Context) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	if g.bot != nil {
		beside.Go(func() { g.serveBot(ctx) })
	}
	if g.socket != nil {
		beside.Go(func() {
			if err := g.server.ServeSocket(ctx, g.socket); err != nil {
				g.app.log.Error("the daemon's socket is not served any more", "error", err)
			}
		})
	}
	return g.server.Serve(ctx, g.api)
}

// serveBot answers what the bot is, and nothing else, until ctx is done.
func (g *gateway) serveBot(ctx context.Context) {
	h := api.NewHTTPServer(api.BotPageHandler(g.daemon, g.page), g.app.log)
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(connlimit.New(g.limits.ofBot()).Listener(g.bot)); !errors.Is(err, http.ErrServerClosed) {
		g.app.log.Error("the page about the bot is not served any more", "error", err)
	}
}

// Close closes the doors. It may be called after serve.
func (g *gateway) Close() (err error) {
	for _, l := range []net.Listener{g.api, g.bot, g.socket} {
		if l != nil {
			if e := l.Close(); !errors.Is(e, net.ErrClosed) {
				err = errors.Join(err, e)
			}
		}
	}
	if g.audit != nil {
		err = errors.Join(err, g.audit.Close())
	}
	return err
}
