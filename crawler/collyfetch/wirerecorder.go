package collyfetch

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// A tape keeps the bytes of one exchange. What is read or written after stop
// leaves no trace on it.
type tape struct {
	ctx   context.Context // of the visit
	share *bodymem.Share  // of the visit
	held  int64           // bytes of it that are reserved for the response

	mu             sync.Mutex // guards what follows
	exchange       decorum.Exchange
	remainingBytes int64 // bytes of the response that still fit
	full           bool
	stopped        bool
}

// around is what a response may take on the wire beyond the limit of its body:
// headers, interim answers, the sizes of chunks.
const around = 1 << 20

// newTape returns a tape for a response with a body of at most body bytes, which count
// in share.
func newTape(ctx context.Context, share *bodymem.Share, body int64) *tape {
	return &tape{ctx: ctx, share: share, remainingBytes: min(body, math.MaxInt64-around) + around}
}

func (t *tape) sends(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.exchange.Request = append(t.exchange.Request, b...)
	}
}

// unsent takes back the last n bytes of the request.
func (t *tape) unsent(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.exchange.Request = t.exchange.Request[:len(t.exchange.Request)-n]
	}
}

// received appends to the response. It returns an error if there is no memory for it.
func (t *tape) received(b []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if int64(len(b)) > t.remainingBytes {
		b, t.full = b[:t.remainingBytes], true
	}
	if err := t.grow(len(b)); err != nil || t.stopped {
		return err
	}
	t.remainingBytes -= int64(len(b))
	t.exchange.Response = append(t.exchange.Response, b...)
	return nil
}

// grow makes room for n bytes. It requires the lock, and releases it while it waits for
// memory, so that stop does not wait. No other goroutine calls received in the
// meantime.
func (t *tape) grow(n int) error {
	have, full := len(t.exchange.Response), cap(t.exchange.Response)
	if t.stopped || have+n <= full {
		return nil
	}
	next := max(min(2*full, have+int(t.remainingBytes)), have+n, 4<<10)
	t.mu.Unlock()
	err := t.share.Reserve(t.ctx, int64(next))
	t.mu.Lock()
	if err != nil || t.stopped {
		return err
	}
	t.exchange.Response = append(make([]byte, 0, next), t.exchange.Response...)
	t.share.Release(t.held)
	t.held = int64(next)
	return nil
}

// stop ends the recording and returns what is on the tape, nil if nothing was
// sent. The tape lets go of it: a connection that is kept open keeps its tape.
func (t *tape) stop(cut decorum.Cut) *decorum.Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.exchange
	t.exchange, t.stopped = decorum.Exchange{}, true
	if len(x.Request) == 0 {
		return nil
	}
	if x.Cut = cut; t.full {
		x.Cut = decorum.CutByLength
	}
	return &x
}

// stopTape ends the capture and returns the captured bytes; err says why there is no
// answer.
func (p *passage) stopTape(ctx context.Context, err error) *decorum.Exchange {
	if p.tape == nil {
		return nil
	}
	return p.tape.stop(p.cut(ctx, err))
}

// cut says how the reading of a visit's answer ended: err is why there is none.
func (p *passage) cut(ctx context.Context, err error) decorum.Cut {
	var (
		limit  slow
		late   net.Error
		broken *net.OpError
	)
	switch {
	case p.response != nil && !p.response.Truncated:
		return decorum.NotCut
	case p.response != nil && (len(p.response.Body) > 0 || p.spool != nil):
		return decorum.CutByLength
	case p.response != nil:
		return decorum.CutOtherwise // its type is not wanted
	case errors.As(context.Cause(ctx), &limit), errors.As(err, &late) && late.Timeout():
		return decorum.CutByTime
	case errors.Is(err, errBloated):
		return decorum.CutByLength
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errBroken), errors.As(err, &broken):
		return decorum.Disconnected
	}
	return decorum.CutOtherwise
}

// A tapped connection writes what passes through it onto the tape that is in.
type tapped struct {
	net.Conn
	tape atomic.Pointer[tape]
}

// startRecording puts a tape in, if c is tapped. A connection over which bytes pass
// that are not the exchange's own, as those of TLS, is not.
func startRecording(c net.Conn, t *tape, server netip.AddrPort) {
	if c, ok := c.(*tapped); ok && t != nil {
		t.exchange.Addr = server
		c.tape.Store(t)
	}
}

// Read is part of net.Conn.
func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if t := c.tape.Load(); t != nil {
		if full := t.received(b[:n]); full != nil {
			return 0, full
		}
	}
	return n, err
}

// Write is part of net.Conn. It notes what it sends before it does: the answer
// may be there, and the visit over, before it returns.
func (c *tapped) Write(b []byte) (int, error) {
	t := c.tape.Load()
	if t != nil {
		t.sends(b)
	}
	n, err := c.Conn.Write(b)
	if t != nil && n < len(b) {
		t.unsent(len(b) - n)
	}
	return n, err
}

// tap makes all connections of t tapped, inside of TLS. They speak HTTP/1.1: the
// frames of HTTP/2 are no message that could be kept.
func tap(t *http.Transport) {
	dial := t.DialContext
	tapping := func(c net.Conn) net.Conn { return &tapped{Conn: c} }
	t.DialContext = wrapping(dial, tapping)
	t.DialTLSContext = wrapping(func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		secure, err := shakeHands(ctx, t, c, addr)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return secure, nil
	}, tapping)
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
}

// shakeHands returns c with TLS, as t would speak it to addr.
func shakeHands(ctx context.Context, t *http.Transport, c net.Conn, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{}
	if t.TLSClientConfig != nil {
		cfg = t.TLSClientConfig.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	cfg.NextProtos = []string{"http/1.1"}
	if t.TLSHandshakeTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.TLSHandshakeTimeout)
		defer cancel()
	}
	secure := tls.Client(c, cfg)
	return secure, secure.HandshakeContext(ctx)
}
