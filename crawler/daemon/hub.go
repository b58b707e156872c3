package daemon

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// unheard is how many events wait for a listener at most.
const unheard = 1024

// A hub tells listeners what happens. Nobody who tells waits for anybody who
// listens.
type hub struct {
	mu        sync.Mutex
	listeners []*listener
	listening atomic.Int32 // how many: telling nobody costs nothing
}

// A listener has the events that it has not heard yet.
type listener struct {
	project string // empty: all
	news    chan struct{}
	mu      sync.Mutex
	events  []api.Event
	missed  int
}

// heard reports whether anybody listens.
func (h *hub) heard() bool { return h.listening.Load() > 0 }

// tell tells an event to all who want to know. One without a time is of now.
func (h *hub) tell(e api.Event) {
	if !h.heard() {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now().UTC()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.listeners {
		if l.project == "" || e.Project == "" || l.project == e.Project {
			l.offer(e)
		}
	}
}

// listen returns the events of a project, or of all, from now on until ctx is
// done.
func (h *hub) listen(ctx context.Context, project string) iter.Seq[api.Event] {
	l := &listener{project: project, news: make(chan struct{}, 1)}
	h.mu.Lock()
	h.listeners = append(h.listeners, l)
	h.mu.Unlock()
	h.listening.Add(1)
	leave := context.AfterFunc(ctx, func() { h.leave(l) })
	return func(yield func(api.Event) bool) {
		defer func() {
			if leave() { // ctx goes on, and nobody listens any more
				h.leave(l)
			}
		}()
		for {
			for _, e := range l.take() {
				if !yield(e) {
					return
				}
			}
			select {
			case <-l.news:
			case <-ctx.Done():
				return
			}
		}
	}
}

// leave is the end of a listener.
func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = slices.DeleteFunc(h.listeners, func(other *listener) bool { return other == l })
	h.listening.Add(-1)
}

// offer gives l an event, or counts it if l is too slow.
func (l *listener) offer(e api.Event) {
	l.mu.Lock()
	if len(l.events) < unheard {
		l.events = append(l.events, e)
	} else {
		l.missed++
	}
	l.mu.Unlock()
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// take returns the events that wait, and how many were missed after them.
func (l *listener) take() []api.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	if l.missed > 0 {
		events = append(events, api.Event{At: time.Now().UTC(), Type: "missed", Project: l.project, MissedEvents: l.missed})
		l.missed = 0
	}
	return events
}
