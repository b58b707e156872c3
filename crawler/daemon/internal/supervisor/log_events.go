package supervisor

import (
	"context"
	"log/slog"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A warningPublishingHandler is a log handler that publishes warnings as events, too.
type warningPublishingHandler struct {
	slog.Handler
	eventBroker *eventBroker
	project     string
	attrs       []slog.Attr
}

// newProjectLogger returns the logger of one project. It publishes warnings to h.
func newProjectLogger(log *slog.Logger, h *eventBroker, project string) *slog.Logger {
	handler := log.With("project", project).Handler()
	return slog.New(&warningPublishingHandler{Handler: handler, eventBroker: h, project: project})
}

// Handle writes r to the log, and publishes it if it is a warning.
func (c *warningPublishingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && c.eventBroker.hasSubscribers() {
		c.eventBroker.publish(c.toEvent(r))
	}
	return c.Handler.Handle(ctx, r)
}

// toEvent returns a record as an event. Its message ends with the attributes.
func (c *warningPublishingHandler) toEvent(r slog.Record) api.Event {
	e := api.Event{Type: "warning", Project: c.project}
	var text strings.Builder
	text.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		switch a.Key {
		case "host":
			e.Host = a.Value.String()
		case "url":
			e.URL = a.Value.String()
		}
		text.WriteString(" " + a.Key + "=" + a.Value.String())
		return true
	}
	for _, a := range c.attrs {
		add(a)
	}
	r.Attrs(add)
	e.Message = text.String()
	return e
}

// WithAttrs is of slog.Handler.
func (c *warningPublishingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *c
	with.Handler, with.attrs = c.Handler.WithAttrs(attrs), append(c.attrs[:len(c.attrs):len(c.attrs)], attrs...)
	return &with
}

// WithGroup is of slog.Handler.
func (c *warningPublishingHandler) WithGroup(name string) slog.Handler {
	with := *c
	with.Handler = c.Handler.WithGroup(name)
	return &with
}
