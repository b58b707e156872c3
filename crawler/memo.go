package crawler

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/decorum-crawler/decorum/storage"
)

// A HostMemo is what a crawl remembers of a host beyond its clock:
// storage.Host.Memo, read. It covers all runs of the crawl and all origins of
// the host.
type HostMemo struct {
	Pages int64 // visits to pages that were answered
	Begun int64 // pages that were asked for at least once
}

const memoVersion = 1

// ReadHostMemo reads a storage.Host.Memo. One that is empty, damaged or of a
// later version says nothing: it is the zero memo.
func ReadHostMemo(b []byte) HostMemo {
	if len(b) == 0 || b[0] != memoVersion {
		return HostMemo{}
	}
	pages, n := binary.Uvarint(b[1:])
	begun, m := binary.Uvarint(b[1+max(n, 0):])
	if n <= 0 || m <= 0 || int64(pages) < 0 || int64(begun) < 0 {
		return HostMemo{}
	}
	return HostMemo{Pages: int64(pages), Begun: int64(begun)}
}

func (m *HostMemo) encode() []byte {
	b := binary.AppendUvarint([]byte{memoVersion}, uint64(m.Pages))
	return binary.AppendUvarint(b, uint64(m.Begun))
}

// memos holds the newest memo of each host that is being visited, and of some
// that were: a lease carries the memo as it was when the lease was made, and
// where a host has several slots, visits have ended since.
type memos struct {
	mu    sync.Mutex // of all but saving
	hosts map[string]*hostMemo
}

type hostMemo struct {
	HostMemo
	users int                 // leases in hand
	begun map[uint64]struct{} // of them, by token: first visits to a page
	full  bool                // see Crawler.setAside

	// saving is held from encoding the memo until the store has it, so that
	// no older one comes after it.
	saving sync.Mutex
}

// take begins the use of the memo of l's host.
func (ms *memos) take(l storage.Lease) {
	host := l.URL.Origin().Host()
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[host]
	if m == nil {
		if ms.hosts == nil || len(ms.hosts) >= remembered {
			ms.forget()
		}
		m = &hostMemo{begun: map[uint64]struct{}{}}
		ms.hosts[host] = m
	}
	if kept := ReadHostMemo(l.Host.Memo); m.users == 0 && kept.Begun > m.Begun {
		m.HostMemo = kept // the host is new here, or another process was there
	}
	m.users++
}

// leave ends the use of the memo of l's host.
func (ms *memos) leave(l storage.Lease) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[l.URL.Origin().Host()]
	m.users--
	delete(m.begun, l.Token)
}

// forget drops the memos that nobody uses: the store has them. It requires ms.mu.
func (ms *memos) forget() {
	used := map[string]*hostMemo{}
	for host, m := range ms.hosts {
		if m.users > 0 {
			used[host] = m
		}
	}
	ms.hosts = used
}

// count counts a visit.
func (ms *memos) count(v *Visit) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[v.Lease.URL.Origin().Host()]
	m.end(v)
	if v.Response != nil && isPage(v.Lease, v.Clearance) {
		m.Pages++
	}
}

// ack ends a lease in the store. A host's new state goes with the newest memo.
func (c *Crawler) ack(ctx context.Context, a storage.Ack) error {
	if a.Host == nil {
		return c.Frontier.Ack(ctx, a)
	}
	m := c.memos.of(a.Lease)
	m.saving.Lock()
	defer m.saving.Unlock()
	a.Host.Memo = c.memos.encode(m)
	return c.Frontier.Ack(ctx, a)
}

// of returns the memo of l's host, which is in use.
func (ms *memos) of(l storage.Lease) *hostMemo {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.hosts[l.URL.Origin().Host()]
}

func (ms *memos) encode(m *hostMemo) []byte {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return m.encode()
}
