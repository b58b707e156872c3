package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// Origins implements storage.Inspector, a portion at a time, in the order in which
// the origins of a partition were met.
func (s *Store) Origins(ctx context.Context, yield func(storage.OriginInfo) bool) error {
	return s.forEachOriginChunk(ctx, func(ctx context.Context, p *client.Partition, names []string) (bool, error) {
		infos, err := s.readOriginInfos(ctx, p, names...)
		if err != nil {
			return false, err
		}
		for _, i := range infos {
			if !yield(i) {
				return false, nil
			}
		}
		return true, nil
	})
}

// OriginNames implements storage.OriginLister, in the order of Origins.
func (s *Store) OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error {
	return s.forEachOriginChunk(ctx, func(_ context.Context, _ *client.Partition, names []string) (bool, error) {
		for _, name := range names {
			o, ok := record.ParseOriginName(name)
			if !ok {
				return false, record.ErrDamaged
			}
			if !yield(o) {
				return false, nil
			}
		}
		return true, nil
	})
}

// forEachOriginChunk calls visit with the names of origins, a portion of a partition at a
// time, until visit returns false or an error.
func (s *Store) forEachOriginChunk(
	ctx context.Context, visit func(ctx context.Context, p *client.Partition, names []string) (more bool, err error),
) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	for _, p := range s.client.Partitions() {
		for from := int64(0); ; from += chunkSize {
			names, err := s.client.ListChunk(ctx, p, "a", from, chunkSize)
			if err != nil {
				return err
			}
			if more, err := visit(ctx, p, names); err != nil || !more {
				return err
			}
			if len(names) < chunkSize {
				break
			}
		}
	}
	return nil
}

// readOriginInfos tells of the origins of one partition that were met.
func (s *Store) readOriginInfos(ctx context.Context, p *client.Partition, names ...string) (infos []storage.OriginInfo, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	err = s.client.RunQuery(ctx, p, lua.OriginInfo, func(m client.Reply) error {
		f := client.NewReplyReader(m)
		now := f.ReadInt()
		all := f.ReadList()
		if f.Err() != nil {
			return f.Err()
		}
		infos = infos[:0]
		for _, m := range all {
			info, err := s.parseOriginInfo(m, now)
			if err != nil {
				return err
			}
			infos = append(infos, info)
		}
		return nil
	}, names...)
	return infos, err
}

func (s *Store) parseOriginInfo(m client.Reply, now int64) (i storage.OriginInfo, err error) {
	f := client.NewReplyReader(m)
	name := f.ReadString()
	i.HeldUntil = s.client.Clock().ToLocalTime(f.ReadInt(), now)
	i.Suspended = f.ReadInt() == 1
	i.QueuedURLs, i.LeasedURLs, i.AwaitingRevisit = int(f.ReadInt()), int(f.ReadInt()), int(f.ReadInt())
	i.ParkedURLs, i.SeenURLs = int(f.ReadInt()), int(f.ReadInt())
	i.NextDue = client.MicrosToTime(s.client.Clock().ToLocalMicros(f.ReadInt(), now))
	i.HostState = readHostState(f, s.client.Clock(), now)
	o, ok := record.ParseOriginName(name)
	if !ok {
		return i, record.ErrDamaged
	}
	i.Origin = o
	return i, f.Err()
}

// Origin implements storage.Inspector.
func (s *Store) Origin(ctx context.Context, o decorum.Origin) (storage.OriginInfo, bool, error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return storage.OriginInfo{}, false, err
	}
	defer end()
	infos, err := s.readOriginInfos(ctx, s.client.PartitionOfHost(o.Host()), o.String())
	if err != nil || len(infos) == 0 {
		return storage.OriginInfo{}, false, err
	}
	return infos[0], true, nil
}

// A queueID is records of one rank in one lane.
type queueID struct {
	lane schedule.LaneID
	rank int64
}

// OriginURLsInState implements storage.Inspector. Leased URLs come first: there they go if
// their leases run out. Portions are read by their place: what moves meanwhile may
// be told twice, or not at all.
func (s *Store) OriginURLsInState(ctx context.Context, o decorum.Origin, state storage.EntryState, yield func(storage.Entry, time.Time) bool) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	if state == storage.StateParked {
		return s.forEachParkedEntryOfOrigin(ctx, o, yield)
	}
	queues, leased, now, err := s.listOriginQueuesAndLeases(ctx, o)
	if err != nil {
		return err
	}
	if state == storage.StateQueued {
		for _, r := range leased {
			if e, err := record.ParseEntry([]byte(r), o); err == nil && !yield(e, time.Time{}) {
				return nil
			}
		}
	}
	for _, l := range queues {
		if (l.lane == schedule.AwaitingRevisit) != (state == storage.StateAwaitingRevisit) {
			continue
		}
		if more, err := s.forEachInQueue(ctx, o, l, now, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// listOriginQueuesAndLeases returns which lines of an origin hold something, what is leased, and the
// time of the server.
func (s *Store) listOriginQueuesAndLeases(ctx context.Context, o decorum.Origin) (queues []queueID, leased []string, now int64, err error) {
	err = s.client.RunQuery(ctx, s.client.PartitionOfHost(o.Host()), lua.ListQueues, func(m client.Reply) error {
		f := client.NewReplyReader(m)
		now = f.ReadInt()
		all := f.ReadList()
		leasedList, _ := f.ReadElement()
		if f.Err() != nil {
			return f.Err()
		}
		queues = queues[:0]
		for _, m := range all {
			f := client.NewReplyReader(m)
			queues = append(queues, queueID{schedule.LaneID(f.ReadInt()), f.ReadInt()})
			if f.Err() != nil {
				return f.Err()
			}
		}
		var err error
		leased, err = leasedList.AsStrSlice()
		return err
	}, o.String())
	return queues, leased, now, err
}

// forEachInQueue tells of the records of a line. Those that make no sense are passed by.
func (s *Store) forEachInQueue(ctx context.Context, o decorum.Origin, l queueID, now int64, yield func(storage.Entry, time.Time) bool) (more bool, err error) {
	step := 1
	if l.lane.IsTimed() {
		step = 2
	}
	for from := 0; ; from += chunkSize {
		var all []string
		err := s.client.RunQuery(ctx, s.client.PartitionOfHost(o.Host()), lua.QueueRecords, func(m client.Reply) (err error) {
			all, err = m.AsStrSlice()
			return err
		}, o.String(), strconv.Itoa(int(l.lane)), strconv.FormatInt(l.rank, 10), strconv.Itoa(from), strconv.Itoa(from+chunkSize-1))
		if err != nil {
			return false, err
		}
		for i := 0; i+step <= len(all); i += step {
			var at time.Time
			if l.lane.IsTimed() {
				us, _ := strconv.ParseFloat(all[i], 64)
				at = s.client.Clock().ToLocalTime(int64(us), now)
			}
			if e, err := record.ParseEntry([]byte(all[i+step-1]), o); err == nil && !yield(e, at) {
				return false, nil
			}
		}
		if len(all) < chunkSize*step {
			return true, nil
		}
	}
}

// forEachParkedEntryOfOrigin tells of the parked records of an origin.
func (s *Store) forEachParkedEntryOfOrigin(ctx context.Context, o decorum.Origin, yield func(storage.Entry, time.Time) bool) error {
	p := s.client.PartitionOfHost(o.Host())
	for from := int64(0); ; from += chunkSize {
		all, err := s.client.ListChunk(ctx, p, "k:"+o.String(), from, chunkSize)
		if err != nil {
			return err
		}
		for _, r := range all {
			if e, err := record.ParseEntry([]byte(r), o); err == nil && !yield(e, time.Time{}) {
				return nil
			}
		}
		if len(all) < chunkSize {
			return nil
		}
	}
}

// HasSeen implements storage.Inspector.
func (s *Store) HasSeen(ctx context.Context, u decorum.URL) (seen bool, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	err = s.client.RunQuery(ctx, s.client.PartitionOfHost(u.Origin().Host()), lua.HasSeen, func(m client.Reply) error {
		n, err := m.AsInt64()
		seen = n == 1
		return err
	}, u.Origin().String(), fingerprintArg(storage.Fingerprint(u)))
	return seen, err
}

// SeenURLFingerprints implements storage.Inspector. What is added meanwhile may be told twice.
func (s *Store) SeenURLFingerprints(ctx context.Context, o decorum.Origin, yield func(fingerprint uint64) bool) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	for i, n := 0, int64(1); int64(i) < n; i++ {
		var fingerprints []string
		err := s.client.RunQuery(ctx, s.client.PartitionOfHost(o.Host()), lua.ListSeen, func(m client.Reply) (err error) {
			f := client.NewReplyReader(m)
			n = f.ReadInt()
			list, _ := f.ReadElement()
			if fingerprints, err = list.AsStrSlice(); err != nil {
				return client.ErrBadReply
			}
			return f.Err()
		}, o.String(), strconv.Itoa(i))
		if err != nil {
			return err
		}
		for _, p := range fingerprints {
			fingerprint, err := strconv.ParseInt(p, 10, 64)
			if err == nil && !yield(uint64(fingerprint)) {
				return nil
			}
		}
	}
	return nil
}
