package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

const eventStreamType = "text/event-stream"

// How often something is said on a stream, so that both sides notice when the other
// has gone; and how soon a browser comes back.
const (
	keepAliveInterval = 15 * time.Second
	reconnectDelay    = 3 * time.Second
)

// streamEvents tells what happens as server-sent events, until the caller goes or the
// server stops. What Last-Event-ID asks for is not kept: events go on with what
// happens now, and pages ask anew for how things stand.
func (s *Server) streamEvents(_ http.ResponseWriter, r *http.Request) (reply, error) {
	if err := s.eventStreams.begin(CallerFromContext(r.Context()).Role); err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	events, err := s.daemon.SubscribeEvents(ctx, r.PathValue("project"))
	if err != nil {
		cancel()
		s.eventStreams.end()
		return reply{}, err
	}
	return reply{writeBody: func(w http.ResponseWriter) error {
		defer s.eventStreams.end()
		return s.eventStreams.writeEvents(ctx, cancel, w, events)
	}}, nil
}

// eventStreams are the streams of events that callers read. They are counted, and all end when
// the server stops.
type eventStreams struct {
	max         int             // of streams at a time
	openCount   atomic.Int64    // streams that have begun and not ended
	stopContext context.Context // ends when streams have to end
	stopAll     func()          // ends stopContext
}

// begin counts a stream for a caller of a role, which ends with end, or refuses it.
func (s *eventStreams) begin(role Role) error {
	limit := s.max
	if role != RoleOperate {
		limit -= s.max / 4 // reserved for the role operate, so that readers cannot take them all
	}
	if s.openCount.Add(1) > int64(limit) {
		s.openCount.Add(-1)
		return newProblem(http.StatusServiceUnavailable, "%d callers read events already: that is the limit", limit)
	}
	return nil
}

// end counts a stream that has ended.
func (s *eventStreams) end() { s.openCount.Add(-1) }

// writeEvents writes events, which end with ctx, until that is done or the server stops.
func (s *eventStreams) writeEvents(ctx context.Context, cancel func(), w http.ResponseWriter, events iter.Seq[Event]) error {
	ch := make(chan Event)
	producerDone := make(chan struct{})
	go func() {
		defer close(producerDone)
		for e := range events {
			select {
			case ch <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { cancel(); <-producerDone }()
	w.Header().Set("Content-Type", eventStreamType)
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep them back
	if err := writeAndFlush(w, fmt.Sprintf("retry: %d\n\n", reconnectDelay.Milliseconds())); err != nil {
		return err
	}
	ticker := time.NewTicker(keepAliveInterval)
	defer ticker.Stop()
	for id := 1; ; {
		var err error
		select {
		case e := <-ch:
			err = writeEvent(w, id, e)
			id++
		case <-ticker.C:
			err = writeAndFlush(w, ": all is well\n\n")
		case <-producerDone:
			return nil
		case <-s.stopContext.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func writeEvent(w http.ResponseWriter, id int, e Event) error {
	text, err := json.Marshal(e)
	text = jsonline.EscapeControlChars(text)
	if err != nil {
		return err
	}
	return writeAndFlush(w, fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, e.Type, text))
}

// writeAndFlush writes to a stream at once. Who does not take it in time is left.
func writeAndFlush(w http.ResponseWriter, text string) error {
	extendWriteDeadline(w)
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// An Event is something that happened.
type Event struct {
	At           time.Time         `json:"at"`
	Type         string            `json:"type"`              // state, visit, sample, brake, file, warning or missed
	Project      string            `json:"project,omitempty"` // empty: of the daemon
	Host         string            `json:"host,omitempty"`
	URL          string            `json:"url,omitempty"`
	Status       int               `json:"status,omitempty"`  // of a visit; 0: no answer came
	Duration     Milliseconds      `json:"took_ms,omitempty"` // of a visit: from the request to the end of the answer
	Bytes        int64             `json:"bytes,omitempty"`   // of the body of a visit, as decoded
	State        ProjectState      `json:"state,omitempty"`   // of an event of type state: what the project does now
	Throughput   *ThroughputSample `json:"sample,omitempty"`  // of an event of type sample: the last second
	Message      string            `json:"text,omitempty"`    // for people
	MissedEvents int               `json:"missed,omitempty"`  // events that were not told
}
