package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

const eventStream = "text/event-stream"

// How often something is said on a stream, so that both sides notice when the other
// has gone; and how soon a browser comes back.
const (
	heartbeat  = 15 * time.Second
	comeBackIn = 3 * time.Second
)

// events tells what happens as server-sent events, until the caller goes or the
// server stops. What Last-Event-ID asks for is not kept: events go on with what
// happens now, and pages ask anew for how things stand.
func (s *Server) events(_ http.ResponseWriter, r *http.Request) (reply, error) {
	limit := s.streamsFor(CallerOf(r.Context()).Role)
	if s.streams.Add(1) > int64(limit) {
		s.streams.Add(-1)
		return reply{}, problem(http.StatusServiceUnavailable, "%d callers read events already: that is the limit", limit)
	}
	ctx, cancel := context.WithCancel(r.Context())
	events, err := s.d.Events(ctx, r.PathValue("project"))
	if err != nil {
		cancel()
		s.streams.Add(-1)
		return reply{}, err
	}
	return reply{stream: func(w http.ResponseWriter) error {
		defer s.streams.Add(-1)
		return s.tell(ctx, cancel, w, events)
	}}, nil
}

// streamsFor returns how many streams may exist when a caller of a role begins one. A
// quarter is reserved for the role operate, so that readers cannot take them all.
func (s *Server) streamsFor(role Role) int {
	if role == Operate {
		return s.cfg.Streams
	}
	return s.cfg.Streams - s.cfg.Streams/4
}

// tell writes events, which end with ctx, until that is done or the server stops.
func (s *Server) tell(ctx context.Context, cancel func(), w http.ResponseWriter, events iter.Seq[Event]) error {
	ch := make(chan Event)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range events {
			select {
			case ch <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { cancel(); <-ended }()
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep them back
	if err := push(w, fmt.Sprintf("retry: %d\n\n", comeBackIn.Milliseconds())); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for id := 1; ; {
		var err error
		select {
		case e := <-ch:
			err = pushEvent(w, id, e)
			id++
		case <-beat.C:
			err = push(w, ": all is well\n\n")
		case <-ended:
			return nil
		case <-s.stop:
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func pushEvent(w http.ResponseWriter, id int, e Event) error {
	text, err := json.Marshal(e)
	text = jsonline.Escape(text)
	if err != nil {
		return err
	}
	return push(w, fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, e.Type, text))
}

// push writes to a stream at once. Who does not take it in time is left.
func push(w http.ResponseWriter, text string) error {
	allowTime(w)
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
