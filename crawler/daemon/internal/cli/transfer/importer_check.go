package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/storage"
)

// verifyStoreCounts compares what the store holds in the end with what was read.
func (m *importer) verifyStoreCounts(ctx context.Context) error {
	c, err := m.stores.Frontier.Counts(ctx)
	if err != nil {
		return err
	}
	got := [...]int{c.QueuedURLs + c.LeasedURLs, c.AwaitingRevisit, c.ParkedURLs, c.SeenURLs}
	want := [...]int{m.urlsByState[storage.StateQueued], m.urlsByState[storage.StateAwaitingRevisit], m.urlsByState[storage.StateParked], m.readTotals.SeenURLs}
	if got != want {
		return fmt.Errorf("the store holds %v URLs (queued, resting, parked, seen), and the export has %v: "+
			"somebody else works on it, or the lines are in another order; begin again with an empty store", got, want)
	}
	return nil
}

// String says how many of each there are.
func (l exportTotals) String() string {
	return fmt.Sprintf("%d origins, %d URLs, %d seen, %d notes", l.Origins, l.URLs, l.SeenURLs, l.Notes)
}

// printSummary says what was imported.
func (m *importer) printSummary() error {
	_, err := fmt.Fprintf(m.stdout, "imported: %v; queued: %d, resting: %d, parked: %d\n", m.readTotals,
		m.urlsByState[storage.StateQueued], m.urlsByState[storage.StateAwaitingRevisit], m.urlsByState[storage.StateParked])
	return err
}

// showProgress tells how far the import has come, if it takes long.
func (m *importer) showProgress(now time.Time) {
	interval, show := terminal.PrintInterval, func(line string) { fmt.Fprintln(m.stderr, line) }
	if m.stderr.IsTerminal() {
		interval, show = terminal.DrawInterval, m.stderr.DrawStatusLine
	}
	if m.lastProgress.IsZero() {
		m.lastProgress = now
	}
	if now.Sub(m.lastProgress) >= interval {
		m.lastProgress = now
		show(fmt.Sprintf("line %d: %v so far", m.lineNumber, m.readTotals))
	}
}

// A robotsRedirectKey is known by its URL and by whose robots.txt leads there.
type robotsRedirectKey struct{ targetURL, robotsFor string }

// importedRobotsRedirects are the hops of an origin that an import which was broken off has left:
// they pass by the seen set, and would be there twice.
type importedRobotsRedirects struct {
	origin    decorum.Origin
	remaining map[robotsRedirectKey]int
}

// consumeIfImported reports whether a hop is there, and counts it off.
func (h *importedRobotsRedirects) consumeIfImported(ctx context.Context, s datadir.StoreInspectorImporter, k *storage.StoredEntry) (bool, error) {
	if o := k.URL.Origin(); h.origin != o {
		h.origin, h.remaining = o, map[robotsRedirectKey]int{}
		var errs []error
		for _, state := range []storage.EntryState{storage.StateQueued, storage.StateParked} {
			errs = append(errs, s.OriginURLsInState(ctx, o, state, func(e storage.Entry, _ time.Time) bool {
				if !e.RobotsFor.IsZero() {
					h.remaining[robotsRedirectKey{e.URL.String(), e.RobotsFor.String()}]++
				}
				return true
			}))
		}
		if err := errors.Join(errs...); err != nil {
			return false, err
		}
	}
	key := robotsRedirectKey{k.URL.String(), k.RobotsFor.String()}
	if h.remaining[key] == 0 {
		return false, nil
	}
	h.remaining[key]--
	return true, nil
}
