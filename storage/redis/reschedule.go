package redis

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// revisitScheduler reschedules pages that await their next visit.
type revisitScheduler struct {
	client    *client.Client
	onDamaged func(error) // Options.OnDamaged
}

// RescheduleByLastmod implements storage.Store.
func (r *revisitScheduler) RescheduleByLastmod(
	ctx context.Context, now time.Time, lastmods []storage.SitemapLastmod,
) (rescheduled int, err error) {
	ctx, end, err := r.client.BeginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	records := make([]string, len(lastmods))
	for _, b := range r.client.Partitions().Batches(len(lastmods), func(i int) (string, []string) {
		u := lastmods[i].URL
		return u.Origin().Host(), []string{u.Origin().String(), fingerprintArg(storage.Fingerprint(u))}
	}) {
		err := r.client.RunQuery(ctx, b.Partition, lua.AwaitingRevisit, func(m client.Reply) error {
			found, err := m.AsStrSlice() // empty for a page that does not rest
			if err != nil || len(found) != len(b.Indexes) {
				return client.ErrBadReply
			}
			for k, i := range b.Indexes {
				records[i] = found[k]
			}
			return nil
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
		newRecord, err := r.rescheduleModifiedURL(ctx, now, g, oldRecord)
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

// rescheduleModifiedURL makes a page due now whose record is oldRecord, and returns its new
// record: empty if it was not rescheduled. Where others have changed the record since, theirs
// is as new as ours.
func (r *revisitScheduler) rescheduleModifiedURL(
	ctx context.Context, now time.Time, g storage.SitemapLastmod, oldRecord string,
) (newRecord string, err error) {
	o := g.URL.Origin()
	e, err := record.ParseEntry([]byte(oldRecord), o)
	if err != nil {
		r.onDamaged(fmt.Errorf("%v: %w", g.URL, err))
		return "", nil
	}
	if !schedule.NoteLastmod(&e, g.Modified) {
		return "", nil
	}
	newRecord = encodeEntry(&e)
	reply, retried, err := r.client.RunUpdate(ctx, r.client.PartitionOfHost(o.Host()), false, lua.Reschedule,
		r.client.Clock().TimeArg(now), o.String(), fingerprintArg(storage.Fingerprint(g.URL)), oldRecord, newRecord)
	if err != nil || reply != "1" && !retried {
		return "", err
	}
	return newRecord, nil
}
