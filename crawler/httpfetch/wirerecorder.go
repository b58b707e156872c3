package httpfetch

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// A wireRecorder keeps the bytes of one exchange, until stopAndTakeExchange.
type wireRecorder struct {
	ctx           context.Context     // the visit's; ends a wait for memory
	memoryShare   *bodymem.VisitShare // the visit's
	reservedBytes int64               // reserved in memoryShare for exchange.RawResponse; constant once stopped

	// mu guards exchange, remainingBytes, truncated and stopped. Only exchange.Addr is set without it,
	// before a connection has the recorder.
	mu             sync.Mutex
	exchange       decorum.RawExchange
	remainingBytes int64 // bytes of the response that still fit
	truncated      bool  // the response exceeded remainingBytes
	stopped        bool
}

// maxWireOverhead is how many bytes a response may take on the wire beyond the limit of its body, for
// headers, interim responses and chunk sizes.
const maxWireOverhead = 1 << 20

// newWireRecorder returns a recorder for a response with a body of at most maxBodyBytes, which are
// reserved in share as they arrive.
func newWireRecorder(ctx context.Context, share *bodymem.VisitShare, maxBodyBytes int64) *wireRecorder {
	return &wireRecorder{ctx: ctx, memoryShare: share,
		remainingBytes: min(maxBodyBytes, math.MaxInt64-maxWireOverhead) + maxWireOverhead}
}

// appendRequest appends b to the request, unless the recording has ended.
func (t *wireRecorder) appendRequest(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.exchange.RawRequest = append(t.exchange.RawRequest, b...)
	}
}

// trimRequestTail removes the last n bytes of the request, which were not sent after all.
func (t *wireRecorder) trimRequestTail(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.exchange.RawRequest = t.exchange.RawRequest[:len(t.exchange.RawRequest)-n]
	}
}

// appendResponse appends b to the response, as far as it fits. It returns an error if the memory for
// it cannot be reserved.
func (t *wireRecorder) appendResponse(b []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if int64(len(b)) > t.remainingBytes {
		b, t.truncated = b[:t.remainingBytes], true
	}
	if err := t.growResponse(len(b)); err != nil || t.stopped {
		return err
	}
	t.remainingBytes -= int64(len(b))
	t.exchange.RawResponse = append(t.exchange.RawResponse, b...)
	return nil
}

// growResponse makes space for n more bytes. The caller holds mu, which is released while
// growResponse waits for memory, so that stopAndTakeExchange does not wait. No other goroutine calls
// appendResponse in the meantime.
func (t *wireRecorder) growResponse(n int) error {
	length, capacity := len(t.exchange.RawResponse), cap(t.exchange.RawResponse)
	if t.stopped || length+n <= capacity {
		return nil
	}
	newCapacity := max(min(2*capacity, length+int(t.remainingBytes)), length+n, 4<<10)
	t.mu.Unlock()
	err := t.memoryShare.Reserve(t.ctx, int64(newCapacity))
	t.mu.Lock()
	if err != nil || t.stopped {
		return err
	}
	t.exchange.RawResponse = append(make([]byte, 0, newCapacity), t.exchange.RawResponse...)
	t.memoryShare.Release(t.reservedBytes)
	t.reservedBytes = int64(newCapacity)
	return nil
}

// stopAndTakeExchange ends the recording and returns the exchange, or nil if nothing was sent. The
// recorder drops the exchange, because a kept-open connection keeps its recorder.
func (t *wireRecorder) stopAndTakeExchange(truncation decorum.TruncationReason) *decorum.RawExchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.exchange
	t.exchange, t.stopped = decorum.RawExchange{}, true
	if len(x.RawRequest) == 0 {
		return nil
	}
	if x.Truncation = truncation; t.truncated {
		x.Truncation = decorum.TruncatedByLength
	}
	return &x
}

// truncation returns why the recorded response is incomplete, if it is. err is the error of a visit
// without a response.
func (p *roundTrip) truncation(ctx context.Context, err error) decorum.TruncationReason {
	var netErr net.Error
	switch {
	case p.response != nil && !p.response.BodyLimitExceeded:
		return decorum.NotTruncated
	case p.response != nil && (len(p.response.Body) > 0 || p.bodySpool != nil):
		return decorum.TruncatedByLength
	case p.response != nil:
		return decorum.TruncatedUnspecified // the body has an unwanted content type
	case errors.As(context.Cause(ctx), new(timeoutError)), errors.As(err, &netErr) && netErr.Timeout():
		return decorum.TruncatedByTime
	case errors.Is(err, errEncodedTooLong):
		return decorum.TruncatedByLength
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errConnBroken),
		errors.As(err, new(*net.OpError)):
		return decorum.TruncatedByDisconnect
	}
	return decorum.TruncatedUnspecified
}

// A recordedConn records the bytes that pass through it on its current recorder.
type recordedConn struct {
	net.Conn
	recorder atomic.Pointer[wireRecorder] // nil before the first visit
}

// NetConn returns the connection inside c, as tls.Conn.NetConn does.
func (c *recordedConn) NetConn() net.Conn { return c.Conn }

// Read is part of net.Conn. It fails if the memory to record the bytes cannot be reserved.
func (c *recordedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if t := c.recorder.Load(); t != nil {
		if memoryErr := t.appendResponse(b[:n]); memoryErr != nil {
			return 0, memoryErr
		}
	}
	return n, err
}

// Write is part of net.Conn. It records the bytes before it sends them: the response may have
// arrived, and the visit may be over, before the write returns.
func (c *recordedConn) Write(b []byte) (int, error) {
	t := c.recorder.Load()
	if t != nil {
		t.appendRequest(b)
	}
	n, err := c.Conn.Write(b)
	if t != nil && n < len(b) {
		t.trimRequestTail(len(b) - n)
	}
	return n, err
}

// recordConns makes the connections of dial recordedConns. They must not carry HTTP/2, whose frames are
// not a message that a WARC file could hold.
func recordConns(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &recordedConn{Conn: c}, nil
	}
}
