package client

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// A contextBoundDialer dials for a rueidis.Client, which is made without a context. Until
// detachFromContext is called, the end of ctx closes the connections that were dialed.
type contextBoundDialer struct {
	mu          sync.Mutex      // guards the fields below
	ctx         context.Context // nil: the client is made
	detachFuncs []func() bool   // has a connection outlive ctx
}

// dial is rueidis.ClientOption.DialCtxFn.
func (d *contextBoundDialer) dial(
	ctx context.Context, address string, plain *net.Dialer, secure *tls.Config,
) (conn net.Conn, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer d.abortOnContextDone(cancel)()
	if secure != nil {
		conn, err = (&tls.Dialer{NetDialer: plain, Config: secure}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = plain.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	d.abortOnContextDone(func() { conn.Close() })
	return conn, nil
}

// abortOnContextDone calls abort when ctx is done, unless detachFromContext or stop is
// called before.
func (d *contextBoundDialer) abortOnContextDone(abort func()) (stop func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil {
		return func() bool { return false }
	}
	stop = context.AfterFunc(d.ctx, abort)
	d.detachFuncs = append(d.detachFuncs, stop)
	return stop
}

// detachFromContext keeps the connections that were dialed open when ctx is done.
func (d *contextBoundDialer) detachFromContext() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, stop := range d.detachFuncs {
		stop()
	}
	d.ctx, d.detachFuncs = nil, nil
}
