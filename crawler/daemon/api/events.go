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

const (
	// keepAliveInterval is the time between comments on a stream, by which each side notices that
	// the other has gone.
	keepAliveInterval = 15 * time.Second
	reconnectDelay    = 3 * time.Second // until a browser reconnects
)

// nextRotationContextKey is the key of the channel that is closed when a token is replaced.
type nextRotationContextKey struct{}

// streamEvents answers with server-sent events until the caller goes, the server stops, or a token is
// replaced: the caller then has to authenticate again. Events are not stored, so it ignores
// Last-Event-ID: a page that reconnects fetches the present state.
func (s *Server) streamEvents(_ http.ResponseWriter, r *http.Request) (reply, error) {
	if err := s.eventStreams.begin(CallerFromContext(r.Context()).Role); err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	nextRotation, _ := ctx.Value(nextRotationContextKey{}).(<-chan struct{})
	events, err := s.daemon.SubscribeEvents(ctx, r.PathValue("project"))
	if err != nil {
		cancel()
		s.eventStreams.end()
		return reply{}, err
	}
	return reply{writeBody: func(w http.ResponseWriter) error {
		defer s.eventStreams.end()
		return s.eventStreams.writeEvents(ctx, cancel, nextRotation, w, events)
	}}, nil
}

// eventStreams limits the number of open event streams, and ends all of them when the server stops.
type eventStreams struct {
	max         int             // streams open at a time
	openCount   atomic.Int64    // streams open now
	stopContext context.Context // done when all streams must end
	stopAll     func()          // cancels stopContext
}

// begin counts a new stream of a caller with the given role, or refuses it with 503. The caller of
// begin calls end when the stream has ended.
func (s *eventStreams) begin(role Role) error {
	limit := s.max
	if role != RoleOperate {
		limit -= s.max / 4 // reserved for the role operate, so that readers cannot take them all
	}
	if s.openCount.Add(1) > int64(limit) {
		s.openCount.Add(-1)
		return newProblem(http.StatusServiceUnavailable, "%d event streams are open, which is the limit", limit)
	}
	return nil
}

// end releases the place of a stream that begin counted.
func (s *eventStreams) end() { s.openCount.Add(-1) }

// writeEvents writes events to w until events ends, ctx is done, revoked is closed, or the server stops.
// events must end when ctx is done; cancel cancels ctx.
func (s *eventStreams) writeEvents(
	ctx context.Context, cancel func(), revoked <-chan struct{}, w http.ResponseWriter, events iter.Seq[Event],
) error {
	// Read the events in a goroutine, which ends before writeEvents returns.
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
	w.Header().Set("X-Accel-Buffering", "no") // else nginx buffers the events
	if err := writeAndFlush(w, fmt.Sprintf("retry: %d\n\n", reconnectDelay.Milliseconds())); err != nil {
		return err
	}
	// Write each event as it comes, and a comment after keepAliveInterval without an event.
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
		case <-revoked:
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

// writeAndFlush writes to a stream without buffering. It fails if the caller does not take the text
// within writeTimeout.
func writeAndFlush(w http.ResponseWriter, text string) error {
	extendWriteDeadline(w)
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// An Event is something that happened in the daemon or in a project.
type Event struct {
	At         time.Time         `json:"at"`
	Type       string            `json:"type"`              // state, visit, sample, brake, file, warning or missed
	Project    string            `json:"project,omitempty"` // absent: an event of the daemon
	Host       string            `json:"host,omitempty"`
	URL        string            `json:"url,omitempty"`
	Status     int               `json:"status,omitempty"`  // of a visit; 0: no answer came
	Duration   Milliseconds      `json:"took_ms,omitempty"` // of a visit: from the request to the end of the answer
	Bytes      int64             `json:"bytes,omitempty"`   // of a visit: the size of the body, as decoded
	State      ProjectState      `json:"state,omitempty"`   // of an event of type state: the new state
	Throughput *ThroughputSample `json:"sample,omitempty"`  // of an event of type sample: the last second
	Message    string            `json:"text,omitempty"`    // for people
	// MissedEvents counts the events that this stream lost, in an event of type missed.
	MissedEvents int `json:"missed,omitempty"`
}
