package inspect

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// FrontierStats returns the totals of the frontier over all hosts, and the sizes of its files.
func (q *Inspector) FrontierStats(ctx context.Context) (*api.FrontierStats, error) {
	s := &api.FrontierStats{At: q.AsOf.UTC(), HostsByState: map[string]int{}}
	err := q.ForEachHostReport(ctx, false, func(h *HostReport) { addHostToStats(s, h) })
	if err != nil {
		return nil, err
	}
	if s.HostsByState[HostDue] > 0 {
		s.NextDueAt = time.Time{} // a host is due now
	}
	s.StoreFiles, err = q.storeFileStats()
	return s, err
}

// storeFileStats returns the sizes of the crawl's store files. A store in memory or in Redis has no
// file.
func (q *Inspector) storeFileStats() (files []api.StoreFileStats, err error) {
	for _, f := range []struct {
		name  string
		store storage.NoteStore
	}{{datadir.StoreFile, q.FrontierStore}, {datadir.RobotsFile, q.RobotsStore}} {
		file, ok := f.store.(interface {
			FileStats() (bolt.FileStats, error)
		})
		if !ok {
			continue
		}
		stats, err := file.FileStats()
		if err != nil {
			return nil, err
		}
		files = append(files, api.StoreFileStats{Name: f.name, Bytes: stats.Size, FreeBytes: stats.FreeBytes})
	}
	return files, nil
}

// addHostToStats adds the numbers of a complete host report to s.
func addHostToStats(s *api.FrontierStats, h *HostReport) {
	s.HostCount++
	s.OriginCount += len(h.Origins)
	s.SeenURLs += h.KnownURLs
	s.ParkedURLs += h.ParkedURLs
	s.AwaitingRevisit += h.AwaitingRevisit
	s.QueuedURLs += h.QueuedURLs
	s.HostsByState[h.State]++
	switch {
	case h.State == HostSuspended:
		s.SuspendedURLs += h.QueuedURLs
	case h.DueAt.IsZero():
	case h.State == HostDue:
		s.DueSince = timecmp.EarlierOfSet(s.DueSince, h.DueAt)
	default:
		s.NextDueAt = timecmp.EarlierOfSet(s.NextDueAt, h.DueAt)
	}
}
