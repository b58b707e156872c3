package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrGone says that a worker was not heard of for so long that it was taken for dead,
// and must join anew.
var ErrGone = errors.New("the worker was taken for dead")

// A Report is what a worker, one process, tells of its part in a crawl of which there
// are limits for all workers together. Its numbers count from when it joined: to tell
// them again changes nothing.
type Report struct {
	Worker   string        // its name, of which there is no other
	Patience time.Duration // after so long without a report a worker is dead
	Number   int64         // the worker's reports are numbered: one that arrives after a later one changes nothing
	Joins    bool          // it is the worker's first report
	Leaves   bool          // it is its last: what it has not used is for others
	Renews   bool          // if a limit is reached already, all begin to count anew
	Limits   Limits
	Permits  int64 // pages that it would like to be permitted; fewer than before gives some back
	Used     int64 // pages of these that it has visited
	Received int64 // bytes of bodies, as decoded
}

// Limits are those of all workers together; 0: there is none.
type Limits struct {
	Pages, Bytes int64         // pages that are visited, bytes of bodies as decoded
	Time         time.Duration // in which at least one worker works
}

// A Muster is what a worker is told.
type Muster struct {
	Workers            int   // that there are, with this one
	Permits            int64 // that the worker has now, used ones included
	Pages, Bytes, Time bool  // the limit is reached
}

// Muster makes a report. Permits of all workers, and pages that were used, are never
// more than Limits.Pages together; those of a worker that has died count as used. The
// counts are in the first partition, and as safe as what Add adds.
func (s *Store) Muster(ctx context.Context, r Report) (m Muster, err error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return m, err
	}
	defer end()
	reply, _, err := s.call(ctx, s.partitions[0], true, musterScript, r.args()...)
	if err != nil {
		return m, fmt.Errorf("muster: %w", err)
	}
	if reply == "gone" {
		return m, fmt.Errorf("muster: %w", ErrGone)
	}
	var pages, bytes, spent int
	if _, err := fmt.Sscan(reply, &m.Workers, &m.Permits, &pages, &bytes, &spent); err != nil {
		return m, errAnswer
	}
	m.Pages, m.Bytes, m.Time = pages == 1, bytes == 1, spent == 1
	return m, nil
}

func (r *Report) args() []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	flag := func(b bool) string {
		if b {
			return "1"
		}
		return "0"
	}
	return []string{r.Worker, number(lengthOf(r.Patience)), flag(r.Joins), flag(r.Leaves), flag(r.Renews),
		number(r.Limits.Pages), number(r.Limits.Bytes), number(lengthOf(r.Limits.Time)),
		number(r.Permits), number(r.Used), number(r.Received), number(r.Number)}
}
