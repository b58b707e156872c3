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
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// parking unparks URLs, and reschedules pages that await their revisit.
type parking struct {
	client    *client.Client
	onDamaged func(error) // Options.OnDamaged
}

// parkedOrigins returns the origins that have parked URLs, each once.
func (k *parking) parkedOrigins(ctx context.Context) (origins []decorum.Origin, err error) {
	ctx, end, err := k.client.BeginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, p := range k.client.Partitions() {
		seen := make(map[string]bool) // SSCAN may return a member twice
		for cursor := uint64(0); ; {
			names, next, err := k.client.ScanSet(ctx, p, "k", cursor, chunkSize)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if o, err := record.ParseOriginName(name); err == nil && !seen[name] {
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

// unparkOfAllOrigins calls UnparkMatchingURLs for each origin that has parked URLs.
func (k *parking) unparkOfAllOrigins(
	ctx context.Context, shouldUnpark func(storage.Entry) bool,
) (unparked int, err error) {
	origins, err := k.parkedOrigins(ctx)
	for i := 0; i < len(origins) && err == nil; i++ {
		var n int
		n, err = k.UnparkMatchingURLs(ctx, origins[i], shouldUnpark)
		unparked += n
	}
	return unparked, err
}

// UnparkMatchingURLs implements storage.Store. It handles chunkSize URLs at a time, each chunk
// atomically. It sees the URLs that were parked when it began, each once.
func (k *parking) UnparkMatchingURLs(
	ctx context.Context, o decorum.Origin, shouldUnpark func(storage.Entry) bool,
) (unparked int, err error) {
	if o.IsZero() {
		return k.unparkOfAllOrigins(ctx, shouldUnpark)
	}
	ctx, end, err := k.client.BeginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	// remaining counts the URLs that were parked at the beginning and are still to be examined.
	// Those that stay parked go to the tail of the list, behind the others.
	for remaining := -1; remaining != 0; {
		takenCount, parkedCount, records, err := k.readChunk(ctx, o)
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
		args, n := k.unparkArgs(o, records, shouldUnpark)
		reply, retried, err := k.client.RunUpdate(ctx, k.client.PartitionOfHost(o.Host()), false, lua.Unpark,
			append([]string{o.String(), strconv.FormatInt(takenCount, 10)}, args...)...)
		if err != nil {
			return unparked, fmt.Errorf("unpark: %w", err)
		}
		// "0" means that another process has taken records out meanwhile, and nothing was done: read
		// the chunk again. After a retry it means that the first attempt was carried out.
		if reply == "1" || retried {
			unparked, remaining = unparked+n, remaining-len(records)
		}
	}
	return unparked, nil
}

// readChunk returns the number of records that were ever taken out of the list of parked ones, the
// number in the list, and the first of them, at most chunkSize.
func (k *parking) readChunk(
	ctx context.Context, o decorum.Origin,
) (takenCount int64, parkedCount int, records []string, err error) {
	err = k.client.RunQuery(ctx, k.client.PartitionOfHost(o.Host()), lua.ReadParked, func(m client.Reply) error {
		f := client.NewReplyReader(m)
		takenCount, parkedCount, records = f.ReadInt(), int(f.ReadInt()), f.ReadStrings()
		return f.Err()
	}, o.String(), strconv.Itoa(chunkSize))
	return takenCount, parkedCount, records, err
}

// unparkArgs returns the lane and rank for each record, and the number of records that go into a
// queue. Records that stay parked have empty ones. A record that cannot be decoded stays parked.
func (k *parking) unparkArgs(
	o decorum.Origin, records []string, shouldUnpark func(storage.Entry) bool,
) (args []string, unparked int) {
	for _, r := range records {
		lane, rank := "", "" // stays parked
		e, err := record.ParseEntry([]byte(r), o)
		switch {
		case err != nil:
			k.onDamaged(fmt.Errorf("the record of a parked URL of %v is damaged: %w", o, err))
		case shouldUnpark(e):
			lane, rank = laneArg(&e), rankArg(&e)
			unparked++
		}
		args = append(args, lane, rank)
	}
	return args, unparked
}

// RescheduleByLastmod implements storage.Store. It reads the records of the pages first, and then
// replaces each record that a lastmod changes, if the record is still the same.
func (k *parking) RescheduleByLastmod(
	ctx context.Context, now time.Time, lastmods []storage.SitemapLastmod,
) (rescheduled int, err error) {
	ctx, end, err := k.client.BeginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	// Read the records, one call for each partition.
	records := make([]string, len(lastmods))
	for _, b := range k.client.Partitions().Batches(len(lastmods), func(i int) (string, []string) {
		u := lastmods[i].URL
		return u.Origin().Host(), []string{u.Origin().String(), fingerprintArg(storage.Fingerprint(u))}
	}) {
		err := k.client.RunQuery(ctx, b.Partition, lua.AwaitingRevisit, func(m client.Reply) error {
			found, err := m.AsStrSlice() // empty for a page that does not await its revisit
			if err != nil || len(found) != len(b.Indexes) {
				return client.ErrBadReply
			}
			for n, i := range b.Indexes {
				records[i] = found[n]
			}
			return nil
		}, b.Args...)
		if err != nil {
			return rescheduled, fmt.Errorf("reschedule: %w", err)
		}
	}
	// Replace them. A page that occurs twice in lastmods has the record that this call wrote.
	rewritten := make(map[decorum.URL]string)
	for i, g := range lastmods {
		oldRecord := cmp.Or(rewritten[g.URL], records[i])
		if oldRecord == "" {
			continue
		}
		newRecord, err := k.rescheduleModifiedURL(ctx, now, g, oldRecord)
		if err != nil {
			return rescheduled, fmt.Errorf("reschedule: %w", err)
		}
		if newRecord != "" {
			rewritten[g.URL] = newRecord
			rescheduled++
		}
	}
	return rescheduled, nil
}

// rescheduleModifiedURL makes a page due now, if it was modified since its last visit. It returns
// the new record, or an empty string if it changed nothing. If another process has replaced
// oldRecord meanwhile, that record stays: it is as new as this one.
func (k *parking) rescheduleModifiedURL(
	ctx context.Context, now time.Time, g storage.SitemapLastmod, oldRecord string,
) (newRecord string, err error) {
	o := g.URL.Origin()
	e, err := record.ParseEntry([]byte(oldRecord), o)
	if err != nil {
		k.onDamaged(fmt.Errorf("the record of %v is damaged: %w", g.URL, err))
		return "", nil
	}
	if !schedule.NoteLastmod(&e, g.Modified) {
		return "", nil
	}
	newRecord = encodeEntry(&e)
	// "0" means that the record differs from oldRecord: after a retry because the first attempt was
	// carried out, otherwise because another process has replaced it.
	reply, retried, err := k.client.RunUpdate(ctx, k.client.PartitionOfHost(o.Host()), false, lua.Reschedule,
		k.client.ScriptClock().TimeArg(now), o.String(),
		fingerprintArg(storage.Fingerprint(g.URL)), oldRecord, newRecord)
	if err != nil || reply != "1" && !retried {
		return "", err
	}
	return newRecord, nil
}
