package supervisor

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// maxPendingEvents is how many events wait for a listener at most.
const maxPendingEvents = 1024

// An eventBroker tells listeners what happens. Nobody who tells waits for anybody who
// listens.
type eventBroker struct {
	mu              sync.Mutex
	subscribers     []*eventSubscriber
	subscriberCount atomic.Int32 // how many: telling nobody costs nothing
}

// An eventSubscriber has the events that it has not heard yet.
type eventSubscriber struct {
	project      string // empty: all
	wake         chan struct{}
	mu           sync.Mutex
	pending      []api.Event
	missedEvents int
}

// hasSubscribers reports whether anybody listens.
func (h *eventBroker) hasSubscribers() bool { return h.subscriberCount.Load() > 0 }

// publish tells an event to all who want to know. One without a time is of now.
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
	l := &eventSubscriber{project: project, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	h.subscribers = append(h.subscribers, l)
	h.mu.Unlock()
	h.subscriberCount.Add(1)
	stopAfterFunc := context.AfterFunc(ctx, func() { h.unsubscribe(l) })
	return func(yield func(api.Event) bool) {
		defer func() {
			if stopAfterFunc() { // ctx goes on, and nobody listens any more
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

// unsubscribe is the end of a listener.
func (h *eventBroker) unsubscribe(l *eventSubscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers = slices.DeleteFunc(h.subscribers, func(other *eventSubscriber) bool { return other == l })
	h.subscriberCount.Add(-1)
}

// enqueueOrCountMissed gives l an event, or counts it if l is too slow.
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
