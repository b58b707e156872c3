package redis

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// Hold implements storage.Store.
func (s *Store) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	_, _, err = s.client.RunUpdate(ctx, s.client.PartitionOfHost(o.Host()), false, lua.Hold, o.String(), o.Host(), s.client.Clock().TimeArg(until), boolArg(suspended))
	return err
}

// RescheduleByLastmod implements storage.Store.
func (s *Store) RescheduleByLastmod(ctx context.Context, now time.Time, lastmods []storage.SitemapLastmod) (rescheduled int, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	records := make([]string, len(lastmods))
	for _, b := range s.client.Partitions().Batches(len(lastmods), func(i int) (string, []string) {
		u := lastmods[i].URL
		return u.Origin().Host(), []string{u.Origin().String(), fingerprintArg(storage.Fingerprint(u))}
	}) {
		err := s.client.RunQuery(ctx, b.Partition, lua.AwaitingRevisit, func(m client.Reply) error {
			return parseAwaitingRevisitRecords(m, b.Indexes, records)
		}, b.Args...)
		if err != nil {
			return rescheduled, fmt.Errorf("recall: %w", err)
		}
	}
	rewritten := make(map[decorum.URL]string) // what this call has made of a page
	for i, g := range lastmods {
		oldRecord := cmp.Or(rewritten[g.URL], records[i])
		if oldRecord == "" {
			continue
		}
		newRecord, err := s.rescheduleModifiedURL(ctx, now, g, oldRecord)
		if err != nil {
			return rescheduled, fmt.Errorf("recall: %w", err)
		}
		if newRecord != "" {
			rewritten[g.URL] = newRecord
			rescheduled++
		}
	}
	return rescheduled, nil
}

// parseAwaitingRevisitRecords reads what awaiting_revisit.lua returns: records, or nothing, of the items.
func parseAwaitingRevisitRecords(m client.Reply, items []int, existing []string) error {
	records, err := m.ToArray()
	if err != nil || len(records) != len(items) {
		return client.ErrBadReply
	}
	for k, r := range records {
		if r.IsNil() {
			continue
		}
		if existing[items[k]], err = r.ToString(); err != nil {
			return client.ErrBadReply
		}
	}
	return nil
}

// rescheduleModifiedURL recalls a page that was found to rest, and returns its new record: nothing
// if it was not recalled. Where others have changed it since, theirs is as new as ours.
func (s *Store) rescheduleModifiedURL(ctx context.Context, now time.Time, g storage.SitemapLastmod, oldRecord string) (newRecord string, err error) {
	o := g.URL.Origin()
	e, err := record.ParseEntry([]byte(oldRecord), o)
	if err != nil {
		s.opts.OnDamaged(fmt.Errorf("%v: %w", g.URL, err))
		return "", nil
	}
	var page storage.VisitHistorySummary
	if e.VisitHistorySummary != nil {
		page = *e.VisitHistorySummary
	}
	if !page.VisitedAt.Before(g.Modified) {
		return "", nil
	}
	page.SitemapLastmod = g.Modified
	e.VisitHistorySummary = &page
	newRecord = encodeEntry(&e)
	reply, retried, err := s.client.RunUpdate(ctx, s.client.PartitionOfHost(o.Host()), false, lua.Reschedule,
		s.client.Clock().TimeArg(now), o.String(), fingerprintArg(storage.Fingerprint(g.URL)), oldRecord, newRecord)
	if err != nil || reply != "1" && !retried {
		return "", err
	}
	return newRecord, nil
}

// OriginsWithParkedURLs implements storage.Store.
func (s *Store) OriginsWithParkedURLs(ctx context.Context) (origins []decorum.Origin, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, p := range s.client.Partitions() {
		seen := make(map[string]bool) // a scan may tell of one twice
		for cursor := uint64(0); ; {
			names, next, err := s.client.SetChunk(ctx, p, "k", cursor, chunkSize)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if o, ok := record.ParseOriginName(name); ok && !seen[name] {
					seen[name] = true
					origins = append(origins, o)
				}
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return origins, nil
}

// chunkSize is how many URLs, or origins, one call goes through.
const chunkSize = 256

// UnparkMatchingURLs implements storage.Store. Each portion is atomic.
func (s *Store) UnparkMatchingURLs(ctx context.Context, o decorum.Origin, shouldUnpark func(storage.Entry) bool) (unparked int, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	for remaining := -1; remaining != 0; {
		takenCount, parkedCount, records, err := s.readParkedChunk(ctx, o)
		if err != nil {
			return unparked, err
		}
		if remaining < 0 {
			remaining = parkedCount
		}
		records = records[:min(remaining, len(records))]
		if len(records) == 0 {
			break
		}
		args, n := s.unparkArgs(o, records, shouldUnpark)
		reply, retried, err := s.client.RunUpdate(ctx, s.client.PartitionOfHost(o.Host()), false, lua.Unpark,
			append([]string{o.String(), strconv.FormatInt(takenCount, 10)}, args...)...)
		if err != nil {
			return unparked, fmt.Errorf("revive: %w", err)
		}
		if reply == "1" || retried {
			unparked, remaining = unparked+n, remaining-len(records)
		}
	}
	return unparked, nil
}

// readParkedChunk returns what read_parked.lua does.
func (s *Store) readParkedChunk(ctx context.Context, o decorum.Origin) (takenCount int64, parkedCount int, records []string, err error) {
	err = s.client.RunQuery(ctx, s.client.PartitionOfHost(o.Host()), lua.ReadParked, func(m client.Reply) error {
		f := client.NewReplyReader(m)
		takenCount, parkedCount = f.ReadInt(), int(f.ReadInt())
		if list, ok := f.ReadElement(); ok {
			if records, err = list.AsStrSlice(); err != nil {
				return client.ErrBadReply
			}
		}
		return f.Err()
	}, o.String(), strconv.Itoa(chunkSize))
	return takenCount, parkedCount, records, err
}

// unparkArgs returns where each record goes, and how many are revived. A record that
// makes no sense stays.
func (s *Store) unparkArgs(o decorum.Origin, records []string, shouldUnpark func(storage.Entry) bool) (args []string, unparked int) {
	for _, r := range records {
		e, err := record.ParseEntry([]byte(r), o)
		switch {
		case err != nil:
			s.opts.OnDamaged(fmt.Errorf("a parked URL of %v: %w", o, err))
			args = append(args, "", "")
		case shouldUnpark(e):
			args = append(args, strconv.Itoa(int(laneOfEntry(&e))), rankArg(&e))
			unparked++
		default:
			args = append(args, "", "")
		}
	}
	return args, unparked
}

// Counts implements storage.Store.
func (s *Store) Counts(ctx context.Context) (storage.Counts, error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return storage.Counts{}, err
	}
	defer end()
	err = s.client.RefreshSummaries(ctx, lua.Summary)
	if err != nil {
		return storage.Counts{}, fmt.Errorf("counts: %w", err)
	}
	all, _ := s.client.Partitions().Total()
	return storage.Counts{
		QueuedHosts: int(all.HostCount), DueHosts: int(all.DueHosts), QueuedURLs: int(all.QueuedURLs), LeasedURLs: int(all.LeasedURLs), ParkedURLs: int(all.ParkedURLs),
		SeenURLs: int(all.SeenURLs), SuspendedURLs: int(all.SuspendedURLs), AwaitingRevisit: int(all.AwaitingRevisit),
	}, nil
}
