package supervisor

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// maxPendingEvents is how many events wait for a subscriber at most.
const maxPendingEvents = 1024

// An eventBroker passes events to subscribers. A publisher never waits for a subscriber.
type eventBroker struct {
	mu              sync.Mutex // guards subscribers
	subscribers     []*eventSubscriber
	subscriberCount atomic.Int32 // its length, read without mu: events without subscribers cost nothing
}

// An eventSubscriber has the events that wait for one subscriber.
type eventSubscriber struct {
	project      string // empty: all
	wake         chan struct{}
	mu           sync.Mutex // guards the fields below
	pending      []api.Event
	missedEvents int
}

// hasSubscribers reports whether there is a subscriber.
func (h *eventBroker) hasSubscribers() bool { return h.subscriberCount.Load() > 0 }

// publish passes an event to the subscribers of its project, and of all. Its time is now unless it has
// one.
func (h *eventBroker) publish(e api.Event) {
	if !h.hasSubscribers() {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now().UTC()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.subscribers {
		if l.project == "" || e.Project == "" || l.project == e.Project {
			l.enqueueOrCountMissed(e)
		}
	}
}

// subscribe returns the events of a project, or of all, from now on until ctx is
// done.
func (h *eventBroker) subscribe(ctx context.Context, project string) iter.Seq[api.Event] {
	// Subscribe now: events from the return on are not missed.
	l := &eventSubscriber{project: project, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	h.subscribers = append(h.subscribers, l)
	h.mu.Unlock()
	h.subscriberCount.Add(1)
	// Unsubscribe when ctx is done, or when the loop over the events ends.
	stopAfterFunc := context.AfterFunc(ctx, func() { h.unsubscribe(l) })
	return func(yield func(api.Event) bool) {
		defer func() {
			if stopAfterFunc() { // ctx is not done
				h.unsubscribe(l)
			}
		}()
		for {
			for _, e := range l.takePending() {
				if !yield(e) {
					return
				}
			}
			select {
			case <-l.wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// unsubscribe removes a subscriber.
func (h *eventBroker) unsubscribe(l *eventSubscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers = slices.DeleteFunc(h.subscribers, func(other *eventSubscriber) bool { return other == l })
	h.subscriberCount.Add(-1)
}

// enqueueOrCountMissed adds an event for l, or counts it if too many wait.
func (l *eventSubscriber) enqueueOrCountMissed(e api.Event) {
	l.mu.Lock()
	if len(l.pending) < maxPendingEvents {
		l.pending = append(l.pending, e)
	} else {
		l.missedEvents++
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// takePending returns the events that wait, and how many were missed after them.
func (l *eventSubscriber) takePending() []api.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.pending
	l.pending = nil
	if l.missedEvents > 0 {
		events = append(events, api.Event{At: time.Now().UTC(), Type: "missed", Project: l.project, MissedEvents: l.missedEvents})
		l.missedEvents = 0
	}
	return events
}

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
