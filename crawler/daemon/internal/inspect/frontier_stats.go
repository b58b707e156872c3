package inspect

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// FrontierStats are the numbers of a frontier, and the files that hold it.
type FrontierStats struct {
	At              time.Time        `json:"at"`
	HostCount       int              `json:"host_count"`
	OriginCount     int              `json:"origin_count"`
	HostsByState    map[string]int   `json:"states"` // hosts in each
	QueuedURLs      int              `json:"queued"`
	AwaitingRevisit int              `json:"resting"`
	ParkedURLs      int              `json:"parked"`
	SeenURLs        int              `json:"seen"`
	SuspendedURLs   int              `json:"set_aside"`          // of QueuedURLs: of hosts that are set aside
	NextDueAt       time.Time        `json:"next_due,omitzero"`  // when the next URL can be visited, if none can now
	DueSince        time.Time        `json:"due_since,omitzero"` // since when the host waits that is due longest
	StoreFiles      []StoreFileStats `json:"files"`
}

// StoreFileStats are the sizes of one file of a store.
type StoreFileStats struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	FreeBytes int64  `json:"free_bytes"` // of them, which compact gives back, about
}

// CountFrontier returns the numbers of the frontier, without its files. It reads one host
// after the other.
func (q *Inspector) CountFrontier(ctx context.Context) (*FrontierStats, error) {
	s := &FrontierStats{At: q.Time.UTC(), HostsByState: map[string]int{}}
	if err := q.ForEachHostReport(ctx, false, s.addHost); err != nil {
		return nil, err
	}
	if s.HostsByState[HostDue] > 0 {
		s.NextDueAt = time.Time{} // it is now
	}
	return s, nil
}

// addHost adds a host that is complete.
func (s *FrontierStats) addHost(h *HostReport) {
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
