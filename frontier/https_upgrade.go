package frontier

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// secureNote is the note of an http origin that says how many of its pages in a
// row redirected to themselves on https: one byte, at most secureAfter.
const secureNote = "https"

// secureAfter is how many pages in a row make an origin one that is on https: a
// URL on http that is found from then on is queued as its twin on https.
const secureAfter = 3

// maxCachedOrigins is how many origins are remembered in memory; the rest is read
// from the store again.
const maxCachedOrigins = 10_000

// secured is what is known of http origins.
type secured struct {
	mu     sync.Mutex
	rows   map[decorum.Origin]byte
	some   atomic.Bool // of them, or of those before, one is of an origin on https
	folded atomic.Int64
}

// Folded returns how many URLs on http that were found were taken for their
// twins on https, by this Frontier.
func (f *Frontier) Folded() int64 { return f.secured.folded.Load() }

// Twin returns the URL on https of one on http, and false if u is on https, or on
// a port of its own.
func Twin(u decorum.URL) (decorum.URL, bool) {
	if !mayHaveTwin(u) {
		return decorum.URL{}, false
	}
	twin, err := decorum.ParseURL("https://" + u.String()[len(onHTTP):])
	return twin, err == nil
}

const onHTTP = "http://"

// mayHaveTwin reports whether u is on http, and not on a port of its own. It is
// asked of each link, and makes no URL.
func mayHaveTwin(u decorum.URL) bool {
	return strings.HasPrefix(u.String(), onHTTP) && !hasPort(u.Origin())
}

// hasPort reports whether an origin is on a port of its own.
func hasPort(o decorum.Origin) bool {
	host := o.HostPort()
	i := strings.LastIndexByte(host, ':')
	return i >= 0 && i > strings.LastIndexByte(host, ']') // and not in an IPv6 address
}

// PlainTwin returns the URL on http whose Twin u is, and false if there is none.
func PlainTwin(u decorum.URL) (decorum.URL, bool) {
	rest, ok := strings.CutPrefix(u.String(), "https://")
	if !ok {
		return decorum.URL{}, false
	}
	plain, err := decorum.ParseURL(onHTTP + rest)
	if err != nil {
		return decorum.URL{}, false
	}
	twin, ok := Twin(plain)
	return plain, ok && twin == u
}

// Answered notes how a page was answered: whether it redirected to its twin on
// https. On https, failed says that no answer came, or one that leads back to
// http: then its host is not on https after all.
func (f *Frontier) Answered(ctx context.Context, u decorum.URL, toTwin, failed bool) error {
	o := u.Origin()
	if _, ok := Twin(u); ok {
		return f.setSecured(ctx, o, toTwin)
	}
	if !failed {
		return nil
	}
	plain, ok := PlainTwin(u)
	if !ok {
		return nil
	}
	return f.setSecured(ctx, plain.Origin(), false)
}

// setSecured adds to the row of an origin, or ends it.
func (f *Frontier) setSecured(ctx context.Context, o decorum.Origin, more bool) error {
	f.secured.mu.Lock()
	defer f.secured.mu.Unlock()
	before, err := f.row(ctx, o)
	if err != nil {
		return err
	}
	now := byte(0)
	if more {
		now = min(before+1, secureAfter)
	}
	if now == before {
		return nil
	}
	var note []byte
	if now > 0 {
		note = []byte{now}
	}
	f.secured.put(o, now)
	return f.store.SetNote(ctx, o, secureNote, note)
}

// row returns how many pages in a row of o redirected to https. It requires
// secured.mu.
func (f *Frontier) row(ctx context.Context, o decorum.Origin) (byte, error) {
	if n, known := f.secured.rows[o]; known {
		return n, nil
	}
	note, err := f.store.ReadNote(ctx, o, secureNote)
	if err != nil {
		return 0, err
	}
	if f.secured.rows == nil || len(f.secured.rows) >= maxCachedOrigins {
		f.secured.rows = map[decorum.Origin]byte{}
	}
	n := byte(0)
	if len(note) == 1 {
		n = min(note[0], secureAfter)
	}
	f.secured.put(o, n)
	return n, nil
}

// put remembers the row of an origin. It requires mu.
func (s *secured) put(o decorum.Origin, n byte) {
	s.rows[o] = n
	if n >= secureAfter {
		s.some.Store(true)
	}
}

// fold takes an entry for its twin on https if that is where its origin has gone:
// once, for one that has come back to http from there stays.
func (f *Frontier) fold(ctx context.Context, e *storage.Entry) error {
	if e.Folded {
		return nil
	}
	secure, err := f.Secure(ctx, e.URL)
	if err != nil || secure == e.URL {
		return err
	}
	e.URL, e.Found, e.AsFound, e.Folded = secure, decorum.URL{}, false, true // Found must be of the same origin
	f.secured.folded.Add(1)
	return nil
}

// Secure returns the twin of u on https if that is where its origin has gone,
// else u itself. A URL that belongs to the crawl stays as it is if its twin does
// not: not all of its origin need have gone.
func (f *Frontier) Secure(ctx context.Context, u decorum.URL) (decorum.URL, error) {
	if !mayHaveTwin(u) {
		return u, nil
	}
	f.secured.mu.Lock()
	defer f.secured.mu.Unlock()
	if n, err := f.row(ctx, u.Origin()); err != nil || n < secureAfter {
		return u, err
	}
	twin, ok := Twin(u)
	if !ok || f.InScope(storage.Entry{URL: twin}) != nil && f.InScope(storage.Entry{URL: u}) == nil {
		return u, nil
	}
	return twin, nil
}

// staysPlain reports whether u is known not to be taken for its twin on https, as far
// as that is in memory.
func (f *Frontier) staysPlain(u decorum.URL) bool {
	if !f.secured.some.Load() || !mayHaveTwin(u) {
		return true
	}
	f.secured.mu.Lock()
	defer f.secured.mu.Unlock()
	n, known := f.secured.rows[u.Origin()]
	return known && n < secureAfter
}
