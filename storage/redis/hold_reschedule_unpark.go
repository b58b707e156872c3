package redis

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// Hold implements storage.Store.
func (s *Store) Hold(ctx context.Context, o decorum.Origin, until time.Time, dormant bool) error {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	_, _, err = s.call(ctx, s.partition(o.Host()), false, holdScript, o.String(), o.Host(), s.clock.out(until), flag(dormant))
	return err
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// Recall implements storage.Store.
func (s *Store) Recall(ctx context.Context, now time.Time, sightings []storage.Sighting) (recalled int, err error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	found := make([]string, len(sightings))
	for _, b := range s.batches(len(sightings), func(i int) (string, []string) {
		u := sightings[i].URL
		return u.Origin().Host(), []string{u.Origin().String(), printOf(storage.Fingerprint(u))}
	}) {
		err := s.ask(ctx, b.partition, restingScript, func(m rueidis.RedisMessage) error {
			return readRested(m, b.items, found)
		}, b.args...)
		if err != nil {
			return recalled, fmt.Errorf("recall: %w", err)
		}
	}
	ours := make(map[decorum.URL]string) // what this call has made of a page
	for i, g := range sightings {
		old := cmp.Or(ours[g.URL], found[i])
		if old == "" {
			continue
		}
		fresh, err := s.recall(ctx, now, g, old)
		if err != nil {
			return recalled, fmt.Errorf("recall: %w", err)
		}
		if fresh != "" {
			ours[g.URL] = fresh
			recalled++
		}
	}
	return recalled, nil
}

// readRested reads what awaiting_revisit.lua returns: records, or nothing, of the items.
func readRested(m rueidis.RedisMessage, items []int, found []string) error {
	records, err := m.ToArray()
	if err != nil || len(records) != len(items) {
		return errAnswer
	}
	for k, r := range records {
		if r.IsNil() {
			continue
		}
		if found[items[k]], err = r.ToString(); err != nil {
			return errAnswer
		}
	}
	return nil
}

// recall recalls a page that was found to rest, and returns its new record: nothing
// if it was not recalled. Where others have changed it since, theirs is as new as ours.
func (s *Store) recall(ctx context.Context, now time.Time, g storage.Sighting, old string) (fresh string, err error) {
	o := g.URL.Origin()
	e, err := record.ParseEntry([]byte(old), o)
	if err != nil {
		s.opts.Damaged(fmt.Errorf("%v: %w", g.URL, err))
		return "", nil
	}
	var page storage.Page
	if e.Page != nil {
		page = *e.Page
	}
	if !page.Visited.Before(g.Modified) {
		return "", nil
	}
	page.Listed = g.Modified
	e.Page = &page
	fresh = encodeEntry(&e)
	said, again, err := s.call(ctx, s.partition(o.Host()), false, recallScript,
		s.clock.out(now), o.String(), printOf(storage.Fingerprint(g.URL)), old, fresh)
	if err != nil || said != "1" && !again {
		return "", err
	}
	return fresh, nil
}

// Parked implements storage.Store.
func (s *Store) Parked(ctx context.Context) (origins []decorum.Origin, err error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, p := range s.partitions {
		met := make(map[string]bool) // a scan may tell of one twice
		for cursor := uint64(0); ; {
			page, err := s.scanParked(ctx, p, cursor)
			if err != nil {
				return nil, err
			}
			for _, name := range page.Elements {
				if o, ok := record.ParseOrigin(name); ok && !met[name] {
					met[name] = true
					origins = append(origins, o)
				}
			}
			if cursor = page.Cursor; cursor == 0 {
				break
			}
		}
	}
	return origins, nil
}

func (s *Store) scanParked(ctx context.Context, p *partition, cursor uint64) (page rueidis.ScanEntry, err error) {
	_, err = s.persist(ctx, p, func() (err error) {
		page, err = s.client.Do(ctx, s.client.B().Sscan().Key(p.base+"k").Cursor(cursor).Count(portion).Build()).AsScanEntry()
		return err
	})
	return page, err
}

// portion is how many URLs, or origins, one call goes through.
const portion = 256

// Revive implements storage.Store. Each portion is atomic.
func (s *Store) Revive(ctx context.Context, o decorum.Origin, shouldUnpark func(storage.Entry) bool) (revived int, err error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	for left := -1; left != 0; {
		taken, there, records, err := s.parkedOf(ctx, o)
		if err != nil {
			return revived, err
		}
		if left < 0 {
			left = there
		}
		records = records[:min(left, len(records))]
		if len(records) == 0 {
			break
		}
		args, n := s.unparkArgs(o, records, shouldUnpark)
		said, again, err := s.call(ctx, s.partition(o.Host()), false, reviveScript,
			append([]string{o.String(), strconv.FormatInt(taken, 10)}, args...)...)
		if err != nil {
			return revived, fmt.Errorf("revive: %w", err)
		}
		if said == "1" || again {
			revived, left = revived+n, left-len(records)
		}
	}
	return revived, nil
}

// parkedOf returns what read_parked.lua does.
func (s *Store) parkedOf(ctx context.Context, o decorum.Origin) (taken int64, there int, records []string, err error) {
	err = s.ask(ctx, s.partition(o.Host()), parkedScript, func(m rueidis.RedisMessage) error {
		f := fieldsOf(m)
		taken, there = f.int(), int(f.int())
		if list, ok := f.next(); ok {
			if records, err = list.AsStrSlice(); err != nil {
				return errAnswer
			}
		}
		return f.err
	}, o.String(), strconv.Itoa(portion))
	return taken, there, records, err
}

// unparkArgs returns where each record goes, and how many are revived. A record that
// makes no sense stays.
func (s *Store) unparkArgs(o decorum.Origin, records []string, shouldUnpark func(storage.Entry) bool) (args []string, revived int) {
	for _, r := range records {
		e, err := record.ParseEntry([]byte(r), o)
		switch {
		case err != nil:
			s.opts.Damaged(fmt.Errorf("a parked URL of %v: %w", o, err))
			args = append(args, "", "")
		case shouldUnpark(e):
			args = append(args, strconv.Itoa(int(laneOf(&e))), rankOf(&e))
			revived++
		default:
			args = append(args, "", "")
		}
	}
	return args, revived
}

// Counts implements storage.Store.
func (s *Store) Counts(ctx context.Context) (storage.Counts, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return storage.Counts{}, err
	}
	defer end()
	_, err = s.persist(ctx, s.partitions[0], func() error {
		began := s.calls.Load()
		for i, a := range s.tryAll(ctx, lookScript, callsTo(s.partitions)) {
			if a.err != nil {
				return a.err
			}
			if err := s.learn(s.partitions[i], began, a.message); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return storage.Counts{}, fmt.Errorf("counts: %w", err)
	}
	all, _ := s.total()
	return storage.Counts{
		Hosts: int(all.hosts), Due: int(all.due), Queued: int(all.queued), Leased: int(all.out), Parked: int(all.parked),
		Seen: int(all.seen), Dormant: int(all.dormant), Resting: int(all.resting),
	}, nil
}
