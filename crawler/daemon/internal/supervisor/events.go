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

// maxPendingEvents limits the events that wait for one subscriber. Further events are counted, not
// kept.
const maxPendingEvents = 1024

// An eventBroker passes events to subscribers. A publisher never waits for a subscriber.
type eventBroker struct {
	mu              sync.Mutex // guards subscribers
	subscribers     []*eventSubscriber
	subscriberCount atomic.Int32 // len(subscribers), for a check without mu
}

// An eventSubscriber queues events for one subscriber.
type eventSubscriber struct {
	project      string        // empty: all projects
	wake         chan struct{} // receives, without blocking the sender, after an event was queued or missed
	mu           sync.Mutex    // guards pending and missedEvents
	pending      []api.Event   // at most maxPendingEvents, the oldest first
	missedEvents int           // events since pending was full
}

func (h *eventBroker) hasSubscribers() bool { return h.subscriberCount.Load() > 0 }

// publish passes an event to the subscribers of its project and to those of all projects. An event
// without a project goes to all subscribers. A zero time is replaced by the present time.
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

// subscribe returns the events of a project, or of all projects if project is empty, from now on until
// ctx is done. An event of type "missed" says how many events were dropped because the subscriber was
// too slow. The sequence can be iterated once.
func (h *eventBroker) subscribe(ctx context.Context, project string) iter.Seq[api.Event] {
	// Subscribe before the iteration begins, so that events between the two are not missed.
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

func (h *eventBroker) unsubscribe(l *eventSubscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers = slices.DeleteFunc(h.subscribers, func(other *eventSubscriber) bool { return other == l })
	h.subscriberCount.Add(-1)
}

// enqueueOrCountMissed queues an event for l, or counts it if maxPendingEvents are queued.
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

// takePending removes and returns the queued events. If events were missed after them, the last one
// returned says how many.
func (l *eventSubscriber) takePending() []api.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.pending
	l.pending = nil
	if l.missedEvents > 0 {
		events = append(events, api.Event{At: time.Now().UTC(), Type: "missed", Project: l.project,
			MissedEvents: l.missedEvents})
		l.missedEvents = 0
	}
	return events
}

// A warningPublishingHandler is a slog.Handler that also publishes records of level Warn and above as
// events.
type warningPublishingHandler struct {
	slog.Handler
	eventBroker *eventBroker
	project     string
	attrs       []slog.Attr
}

// newProjectLogger returns the logger of one project, which publishes warnings and errors to h.
func newProjectLogger(log *slog.Logger, h *eventBroker, project string) *slog.Logger {
	handler := log.With("project", project).Handler()
	return slog.New(&warningPublishingHandler{Handler: handler, eventBroker: h, project: project})
}

// Handle implements slog.Handler.
func (c *warningPublishingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && c.eventBroker.hasSubscribers() {
		c.eventBroker.publish(c.toEvent(r))
	}
	return c.Handler.Handle(ctx, r)
}

// toEvent converts a record to an event. The attributes follow the message as key=value; host and url
// also fill their fields.
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

// WithAttrs implements slog.Handler.
func (c *warningPublishingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *c
	with.Handler, with.attrs = c.Handler.WithAttrs(attrs), append(c.attrs[:len(c.attrs):len(c.attrs)], attrs...)
	return &with
}

// WithGroup implements slog.Handler.
func (c *warningPublishingHandler) WithGroup(name string) slog.Handler {
	with := *c
	with.Handler = c.Handler.WithGroup(name)
	return &with
}
