package httpfetch

import (
	"container/heap"
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/internal/recent"
)

// A connKeeper decides how long each connection of a Fetcher is kept open for later visits to its
// host. The transport chooses the connection of a visit; a connKeeper only closes connections.
type connKeeper struct {
	idle        *IdleConns
	maxIdleTime time.Duration // longest time that a connection is kept without a visit

	// idle.mu guards the following fields.
	hosts          map[string]*hostConns // hosts with a visit under way, or with a connection
	serverTimeouts recent.Map[string, serverTimeout]
	// hasSchedule means that setNextVisit is called after each visit, so that connections beyond
	// the limit can wait for it: otherwise the host that is visited next would lose its connection.
	hasSchedule bool
}

// newConnKeeper returns a connKeeper that counts its connections in idle.
func newConnKeeper(idle *IdleConns, maxIdleTime time.Duration) *connKeeper {
	return &connKeeper{idle: idle, maxIdleTime: maxIdleTime, hosts: map[string]*hostConns{}}
}

// A hostConns has the connections of a Fetcher to one host, on all its ports. IdleConns.mu guards
// its fields.
type hostConns struct {
	keeper     *connKeeper
	name       string
	conns      []*keptConn
	visits     int         // visits to the host that are under way
	idleSince  time.Time   // when the last visit ended; set while the host is in the heap
	keptUntil  time.Time   // when the connections are closed if no visit comes; likewise
	nextVisit  time.Time   // earliest start of the next visit, as far as is known; likewise
	expiry     *time.Timer // calls closeExpired; nil before the host is idle for the first time
	heapIndex  int         // in IdleConns.byNextVisit; notInHeap unless the host is idle
	countedNow int         // its part of IdleConns.count
}

// A keptConn is a connection of a Fetcher, from its dial until it is closed.
type keptConn struct {
	net.Conn
	keeper *connKeeper
	// lookedUp is the name whose lookup gave the address of the connection; empty if the
	// connection leads to a proxy.
	lookedUp string
	// tunnelAddr is the address of the host when the connection was opened, if it leads to a proxy; zero
	// if the address is not looked up here.
	tunnelAddr  netip.Addr
	readIdle    atomic.Bool // something was read, if only the end, since the host became idle
	doesNotWait bool        // Read returns at once; set only while isUsable reads

	// IdleConns.mu guards the following fields.
	host        *hostConns // nil once the connection is closed or about to be
	outermost   net.Conn   // what wraps this connection, such as TLS; nil before its first use
	addrsExpire time.Time  // until when the lookup is valid; zero: forever
}

// getOrCreateLocked returns the entry of a host. The caller holds idle.mu.
func (k *connKeeper) getOrCreateLocked(host string) *hostConns {
	h := k.hosts[host]
	if h == nil {
		h = &hostConns{keeper: k, name: host, heapIndex: notInHeap}
		k.hosts[host] = h
	}
	return h
}

// add returns c as a connection that was opened for a visit to host. The other arguments are fields of
// keptConn.
func (k *connKeeper) add(c net.Conn, host string, from lookupResult, tunnelAddr netip.Addr) *keptConn {
	kept := &keptConn{Conn: c, keeper: k, lookedUp: from.host, addrsExpire: from.expires, tunnelAddr: tunnelAddr}
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	kept.host = k.getOrCreateLocked(host)
	kept.host.conns = append(kept.host.conns, kept)
	kept.host.updateLocked(time.Now()) // the visit may have ended during the dial
	return kept
}

// beginVisit records that a visit to host begins: until endVisit, its connections are not closed
// for want of use. It returns how long they have been idle; 0 if there are none, or if another visit to
// host is under way.
func (k *connKeeper) beginVisit(host string) (idleFor time.Duration) {
	now := time.Now()
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	h := k.getOrCreateLocked(host)
	if h.heapIndex != notInHeap {
		idleFor = now.Sub(h.idleSince)
	}
	h.visits++
	h.updateLocked(now)
	return idleFor
}

// endVisit records that a visit to host has ended, with what update learns from it.
func (k *connKeeper) endVisit(host string, update func(serverTimeout) serverTimeout) {
	now := time.Now()
	k.idle.mu.Lock()
	k.updateTimeoutLocked(host, update)
	h := k.hosts[host]
	h.visits--
	h.updateLocked(now)
	var excess []*keptConn
	if !k.hasSchedule {
		excess = k.idle.takeExcessLocked(now)
	}
	k.idle.mu.Unlock()
	closeAll(excess)
}

// setNextVisit records that host is visited at due or later; never if due is zero. It closes the
// connections to the host that the server is likely to close before, and then those beyond the limit.
func (k *connKeeper) setNextVisit(host string, due time.Time) {
	now := time.Now()
	k.idle.mu.Lock()
	k.hasSchedule = true
	var unneeded []*keptConn
	if h := k.hosts[host]; h != nil && h.heapIndex != notInHeap {
		if due.IsZero() || !h.keepUntilVisitLocked(due) {
			unneeded = h.takeAllLocked(now)
		} else {
			h.nextVisit = due
			heap.Fix(&k.idle.byNextVisit, h.heapIndex)
		}
	}
	unneeded = append(unneeded, k.idle.takeExcessLocked(now)...)
	k.idle.mu.Unlock()
	closeAll(unneeded)
}

// closeIdle closes the connections to the idle hosts for which wants returns true. It calls wants without
// idle.mu.
func (k *connKeeper) closeIdle(wants func(host string) bool) {
	k.idle.mu.Lock()
	hosts := slices.Collect(maps.Keys(k.hosts))
	k.idle.mu.Unlock()
	hosts = slices.DeleteFunc(hosts, func(host string) bool { return !wants(host) })
	now := time.Now()
	k.idle.mu.Lock()
	var unneeded []*keptConn
	for _, host := range hosts {
		if h := k.hosts[host]; h != nil && h.heapIndex != notInHeap {
			unneeded = append(unneeded, h.takeAllLocked(now)...)
		}
	}
	k.idle.mu.Unlock()
	closeAll(unneeded)
}

// updateTimeoutLocked replaces what is known of the timeout of host by update of it.
func (k *connKeeper) updateTimeoutLocked(host string, update func(serverTimeout) serverTimeout) {
	old, _ := k.serverTimeouts.Get(host, maxKnownTimeouts)
	switch t := update(old); t {
	case old:
	case serverTimeout{}:
		k.serverTimeouts.Delete(host)
	default:
		k.serverTimeouts.Put(host, t, maxKnownTimeouts)
	}
}

// initialIdleTimeLocked returns how long the connections to a host are kept after a visit if
// setNextVisit is not called. Where setNextVisit will be called, it chooses the time.
func (k *connKeeper) initialIdleTimeLocked(host string) time.Duration {
	if k.hasSchedule {
		return k.maxIdleTime
	}
	t, _ := k.serverTimeouts.Get(host, maxKnownTimeouts)
	return t.likely(k.maxIdleTime)
}

// keepUntilVisitLocked sets how long the connections of an idle host are kept. It returns false if
// the server is likely to close them before the next visit. A timeout that only closed connections
// have shown may have changed: every probeInterval times it is ignored.
func (h *hostConns) keepUntilVisitLocked(nextVisit time.Time) bool {
	k, rest := h.keeper, nextVisit.Sub(h.idleSince)
	t, _ := k.serverTimeouts.Get(h.name, maxKnownTimeouts)
	idleTime := t.likely(k.maxIdleTime)
	if atMost := t.limitByHeader(k.maxIdleTime); rest > idleTime && rest <= atMost {
		t.skipCount++
		k.serverTimeouts.Put(h.name, t, maxKnownTimeouts)
		if t.skipCount%probeInterval == 0 {
			idleTime = atMost
		}
	}
	if rest > idleTime {
		return false
	}
	h.keepForLocked(idleTime)
	return true
}

// updateLocked updates what follows from visits and conns: whether the host is in the heap, the
// count of connections and the timer. It forgets a host without visits and connections. The caller
// holds IdleConns.mu.
func (h *hostConns) updateLocked(now time.Time) {
	idle, all := h.visits == 0 && len(h.conns) > 0, h.keeper.idle
	counted := 0
	if idle {
		counted = len(h.conns)
	}
	all.count += counted - h.countedNow
	h.countedNow = counted
	switch {
	case idle && h.heapIndex == notInHeap:
		h.idleSince, h.nextVisit = now, now
		for _, c := range h.conns {
			c.readIdle.Store(false)
		}
		heap.Push(&all.byNextVisit, h)
		h.keepForLocked(h.keeper.initialIdleTimeLocked(h.name))
	case !idle && h.heapIndex != notInHeap:
		heap.Remove(&all.byNextVisit, h.heapIndex)
		h.expiry.Stop()
	}
	if h.visits == 0 && !idle {
		delete(h.keeper.hosts, h.name)
	}
}

// keepForLocked makes the timer close the connections when the host has been idle for d.
func (h *hostConns) keepForLocked(d time.Duration) {
	h.keptUntil = h.idleSince.Add(d)
	if d = time.Until(h.keptUntil); h.expiry == nil {
		h.expiry = time.AfterFunc(d, h.closeExpired)
		return
	}
	h.expiry.Reset(d)
}

// closeExpired closes the connections at keptUntil. The timer calls it.
func (h *hostConns) closeExpired() {
	now := time.Now()
	h.keeper.idle.mu.Lock()
	var expired []*keptConn
	if h.heapIndex != notInHeap && !h.keptUntil.After(now) { // otherwise a visit came, and the timer is set again
		expired = h.takeAllLocked(now)
	}
	h.keeper.idle.mu.Unlock()
	closeAll(expired)
}

// takeAllLocked removes all connections of h, which the caller must close after it has released
// IdleConns.mu.
func (h *hostConns) takeAllLocked(now time.Time) []*keptConn {
	taken := h.conns
	for _, c := range taken {
		c.host = nil
	}
	h.conns = nil
	h.updateLocked(now)
	return taken
}

// Read is part of net.Conn.
func (c *keptConn) Read(b []byte) (int, error) {
	if c.doesNotWait {
		return readArrived(c.Conn, b)
	}
	n, err := c.Conn.Read(b)
	c.readIdle.Store(true)
	return n, err
}

// readWithin reads from c into b, and waits at most for d.
func readWithin(c net.Conn, b []byte, d time.Duration) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		return 0, err
	}
	n, err := c.Read(b)
	if resetErr := c.SetReadDeadline(time.Time{}); err == nil {
		err = resetErr
	}
	return n, err // as it is: crypto/tls looks whether it is temporary
}

// isUsable reports whether outer, an idle connection that wraps a keptConn and that nothing else reads,
// is open and has nothing to read. Over TLS it reads messages of the protocol, such as session tickets;
// anything else would be taken for the response to the next request. From a connection that has ended it
// learns how long the server keeps one.
func isUsable(outer net.Conn) bool {
	kept := connInside[*keptConn](outer)
	kept.doesNotWait = true
	n, err := outer.Read(make([]byte, 1))
	kept.doesNotWait = false
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	now := time.Now()
	k := kept.keeper
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	if h := kept.host; h != nil && h.visits == 1 { // the connection has been idle since the visit before
		k.updateTimeoutLocked(h.name, func(t serverTimeout) serverTimeout { return t.afterClose(now.Sub(h.idleSince)) })
	}
	return false
}

// closeAll closes connections that were taken from their hosts.
func closeAll(conns []*keptConn) {
	for _, c := range conns {
		c.closeOutermost()
	}
}

// closeOutermost closes c with what wraps it: TLS tells the server that the connection ends.
func (c *keptConn) closeOutermost() {
	c.keeper.idle.mu.Lock()
	outermost := c.outermost
	c.keeper.idle.mu.Unlock()
	if outermost != nil {
		_ = outermost.Close() // calls c.Close
		return
	}
	_ = c.Close()
}

// setOutermost records that conn wraps c, for closeOutermost. c may be nil.
func (c *keptConn) setOutermost(conn net.Conn) {
	if c == nil {
		return
	}
	c.keeper.idle.mu.Lock()
	defer c.keeper.idle.mu.Unlock()
	c.outermost = conn
}

// Close is part of net.Conn. If the connection was idle, had something to read, and its Fetcher did not
// choose to close it, the server did. Without something to read, the transport closes a connection whose last
// response was not read to its end, or said that it is the last.
func (c *keptConn) Close() error {
	now := time.Now()
	c.keeper.idle.mu.Lock()
	if h := c.host; h != nil {
		c.host = nil
		if h.heapIndex != notInHeap && c.readIdle.Load() {
			c.keeper.updateTimeoutLocked(h.name, func(t serverTimeout) serverTimeout {
				return t.afterClose(now.Sub(h.idleSince))
			})
		}
		h.conns = slices.DeleteFunc(h.conns, func(other *keptConn) bool { return other == c })
		h.updateLocked(now)
	}
	c.keeper.idle.mu.Unlock()
	return c.Conn.Close()
}

// mayReuse reports whether a visit may use c, which was open before the visit. It may not if c was
// just closed, if the address of c is refused now, or if the host has other addresses: mayReuse looks up
// the host when the last lookup has expired. If the lookup fails, c may lead to a former address.
func (n *crawlDialer) mayReuse(ctx context.Context, c *keptConn, p *roundTrip) bool {
	n.keeper.idle.mu.Lock()
	open, expires := c.host != nil, c.addrsExpire
	n.keeper.idle.mu.Unlock()
	switch {
	case !open:
		return false
	case c.lookedUp == "": // leads to a proxy
		return c.tunnelAddr == p.serverAddr.Addr()
	}
	remote, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil || n.checkPublicAddr(remote) != nil {
		return false
	}
	if expires.IsZero() || time.Now().Before(expires) {
		return true
	}
	found, err := n.resolver.lookup(ctx, c.lookedUp)
	if err != nil {
		return false
	}
	n.keeper.idle.mu.Lock()
	c.addrsExpire = found.expires
	n.keeper.idle.mu.Unlock()
	return slices.Contains(found.addrs, remote.Addr().Unmap())
}
