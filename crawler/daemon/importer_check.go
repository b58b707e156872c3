package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// verify compares what the store holds in the end with what was read.
func (m *importer) verify(ctx context.Context) error {
	c, err := m.files.frontier.Counts(ctx)
	if err != nil {
		return err
	}
	got := [...]int{c.Queued + c.Leased, c.Resting, c.Parked, c.Seen}
	want := [...]int{m.states[storage.InQueue], m.states[storage.InRest], m.states[storage.InParking], m.count.Seen}
	if got != want {
		return fmt.Errorf("the store holds %v URLs (queued, resting, parked, seen), and the export has %v: "+
			"somebody else works on it, or the lines are in another order; begin again with an empty store", got, want)
	}
	return nil
}

// String says how many of each there are.
func (l exportTotals) String() string {
	return fmt.Sprintf("%d origins, %d URLs, %d seen, %d notes", l.Origins, l.URLs, l.Seen, l.Notes)
}

// tell says what was imported.
func (m *importer) tell() error {
	_, err := fmt.Fprintf(m.app.stdout, "imported: %v; queued: %d, resting: %d, parked: %d\n", m.count,
		m.states[storage.InQueue], m.states[storage.InRest], m.states[storage.InParking])
	return err
}

// progress tells how far the import has come, if it takes long.
func (m *importer) progress(now time.Time) {
	every, tell := printEvery, func(line string) { fmt.Fprintln(m.app.screen, line) }
	if m.app.screen.isTerminal() {
		every, tell = drawEvery, m.app.screen.draw
	}
	if m.lastProgress.IsZero() {
		m.lastProgress = now
	}
	if now.Sub(m.lastProgress) >= every {
		m.lastProgress = now
		tell(fmt.Sprintf("line %d: %v so far", m.lineNumber, m.count))
	}
}

// A hop is known by its URL and by whose robots.txt leads there.
type hop struct{ url, of string }

// hopsThere are the hops of an origin that an import which was broken off has left:
// they pass by the seen set, and would be there twice.
type hopsThere struct {
	origin decorum.Origin
	count  map[hop]int
}

// take reports whether a hop is there, and counts it off.
func (h *hopsThere) take(ctx context.Context, s store, k *storage.StoredEntry) (bool, error) {
	if o := k.URL.Origin(); h.origin != o {
		h.origin, h.count = o, map[hop]int{}
		var errs []error
		for _, in := range []storage.State{storage.InQueue, storage.InParking} {
			errs = append(errs, s.URLs(ctx, o, in, func(e storage.Entry, _ time.Time) bool {
				if !e.For.IsZero() {
					h.count[hop{e.URL.String(), e.For.String()}]++
				}
				return true
			}))
		}
		if err := errors.Join(errs...); err != nil {
			return false, err
		}
	}
	key := hop{k.URL.String(), k.For.String()}
	if h.count[key] == 0 {
		return false, nil
	}
	h.count[key]--
	return true, nil
}
