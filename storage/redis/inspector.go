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

// An inspector reads what the servers hold of origins. It changes nothing. Each method reads in
// chunks of chunkSize, so that no call keeps a server busy for long.
type inspector struct{ client *client.Client }

// Origins implements storage.Inspector. It goes through the partitions in turn, and through the
// origins of a partition in the order in which they were first added.
func (n *inspector) Origins(ctx context.Context, yield func(storage.OriginInfo) bool) error {
	return n.forEachOriginChunk(ctx, func(ctx context.Context, p *client.Partition, names []string) (bool, error) {
		infos, err := n.readOriginInfos(ctx, p, names...)
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

// OriginNames implements storage.OriginLister, in the same order as Origins.
func (n *inspector) OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error {
	return n.forEachOriginChunk(ctx, func(_ context.Context, _ *client.Partition, names []string) (bool, error) {
		for _, name := range names {
			o, err := record.ParseOriginName(name)
			if err != nil || !yield(o) {
				return false, err
			}
		}
		return true, nil
	})
}

// forEachOriginChunk calls visit with up to chunkSize names of origins of a partition at a time,
// until visit returns false or an error.
func (n *inspector) forEachOriginChunk(
	ctx context.Context, visit func(ctx context.Context, p *client.Partition, names []string) (more bool, err error),
) error {
	ctx, end, err := n.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	for _, p := range n.client.Partitions() {
		// The list a only grows at its end, so positions stay valid between chunks.
		for from := int64(0); ; from += chunkSize {
			names, err := n.client.ListChunk(ctx, p, "a", from, chunkSize)
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

// readOriginInfos returns what a partition holds of the named origins. It leaves out origins that
// were never added.
func (n *inspector) readOriginInfos(
	ctx context.Context, p *client.Partition, names ...string,
) (infos []storage.OriginInfo, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	err = n.client.RunQuery(ctx, p, lua.OriginInfo, func(m client.Reply) error {
		f := client.NewReplyReader(m)
		now := f.ReadInt()
		all := f.ReadList()
		if f.Err() != nil {
			return f.Err()
		}
		infos = infos[:0] // drop what an earlier attempt has read
		for _, m := range all {
			info, err := n.parseOriginInfo(m, now)
			if err != nil {
				return err
			}
			infos = append(infos, info)
		}
		return nil
	}, names...)
	return infos, err
}

// parseOriginInfo returns what origin_info.lua returned of one origin. now is the server's time.
func (n *inspector) parseOriginInfo(m client.Reply, now int64) (i storage.OriginInfo, err error) {
	// The order of the reads is that of the elements in origin_info.lua.
	f := client.NewReplyReader(m)
	name := f.ReadString()
	i.HeldUntil = n.client.ScriptClock().ToLocalTime(f.ReadInt(), now)
	i.Suspended = f.ReadInt() == 1
	i.QueuedURLs, i.LeasedURLs, i.AwaitingRevisit = int(f.ReadInt()), int(f.ReadInt()), int(f.ReadInt())
	i.ParkedURLs, i.SeenURLs = int(f.ReadInt()), int(f.ReadInt())
	i.NextDue = client.MicrosToTime(n.client.ScriptClock().ToLocalMicros(f.ReadInt(), now))
	i.HostState = readHostState(f, n.client.ScriptClock(), now)
	if i.Origin, err = record.ParseOriginName(name); err != nil {
		return i, err
	}
	return i, f.Err()
}

// Origin implements storage.Inspector. It returns false for an origin that was never added.
func (n *inspector) Origin(ctx context.Context, o decorum.Origin) (storage.OriginInfo, bool, error) {
	ctx, end, err := n.client.BeginCall(ctx)
	if err != nil {
		return storage.OriginInfo{}, false, err
	}
	defer end()
	infos, err := n.readOriginInfos(ctx, n.client.PartitionOfHost(o.Host()), o.String())
	if err != nil || len(infos) == 0 {
		return storage.OriginInfo{}, false, err
	}
	return infos[0], true, nil
}

// A laneRank identifies one queue of an origin: the records of one rank in one lane.
type laneRank struct {
	lane schedule.LaneID
	rank int64
}

// OriginURLsInState implements storage.Inspector. Leased URLs come first, because an expired lease
// puts its URL at the head of its queue. Chunks are read by position: if the crawl runs meanwhile, a
// URL that moves may be reported twice, or not at all.
func (n *inspector) OriginURLsInState(
	ctx context.Context, o decorum.Origin, state storage.EntryState, yield func(storage.Entry, time.Time) bool,
) error {
	ctx, end, err := n.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	if state == storage.StateParked {
		return n.forEachParked(ctx, o, yield)
	}
	// First the leased URLs, whose lanes are unknown, then the queues in the order of leasing.
	queues, leased, now, err := n.listOriginQueuesAndLeases(ctx, o)
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
		if more, err := n.forEachInQueue(ctx, o, l, now, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// listOriginQueuesAndLeases returns the queues of an origin that hold records, the records of its
// leases, and the server's time in its microseconds.
func (n *inspector) listOriginQueuesAndLeases(
	ctx context.Context, o decorum.Origin,
) (queues []laneRank, leased []string, now int64, err error) {
	err = n.client.RunQuery(ctx, n.client.PartitionOfHost(o.Host()), lua.ListQueues, func(m client.Reply) error {
		f := client.NewReplyReader(m)
		now = f.ReadInt()
		all := f.ReadList()
		leased = f.ReadStrings()
		queues = queues[:0]
		for _, m := range all {
			f := client.NewReplyReader(m)
			queues = append(queues, laneRank{schedule.LaneID(f.ReadInt()), f.ReadInt()})
			if f.Err() != nil {
				return f.Err()
			}
		}
		return f.Err()
	}, o.String())
	return queues, leased, now, err
}

// forEachInQueue calls yield with each URL of a queue, until yield returns false. It skips records
// that cannot be decoded. now is the server's time.
func (n *inspector) forEachInQueue(
	ctx context.Context, o decorum.Origin, l laneRank, now int64, yield func(storage.Entry, time.Time) bool,
) (more bool, err error) {
	step := 1 // elements of the reply for each record: a timed lane has the time before it
	if l.lane.IsTimed() {
		step = 2
	}
	for from := 0; ; from += chunkSize {
		var all []string
		err := n.client.RunQuery(ctx, n.client.PartitionOfHost(o.Host()), lua.QueueRecords,
			func(m client.Reply) (err error) {
				all, err = m.AsStrSlice()
				return err
			}, o.String(), strconv.Itoa(int(l.lane)), strconv.FormatInt(l.rank, 10),
			strconv.Itoa(from), strconv.Itoa(from+chunkSize-1))
		if err != nil {
			return false, err
		}
		for i := 0; i+step <= len(all); i += step {
			var at time.Time
			if l.lane.IsTimed() {
				us, _ := strconv.ParseFloat(all[i], 64)
				at = n.client.ScriptClock().ToLocalTime(int64(us), now)
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

// forEachParked calls yield with each parked URL of an origin, until yield returns false. It skips
// records that cannot be decoded. The caller has begun a call.
func (n *inspector) forEachParked(
	ctx context.Context, o decorum.Origin, yield func(storage.Entry, time.Time) bool,
) error {
	p := n.client.PartitionOfHost(o.Host())
	for from := int64(0); ; from += chunkSize {
		all, err := n.client.ListChunk(ctx, p, "k:"+o.String(), from, chunkSize)
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
func (n *inspector) HasSeen(ctx context.Context, u decorum.URL) (seen bool, err error) {
	ctx, end, err := n.client.BeginCall(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	err = n.client.RunQuery(ctx, n.client.PartitionOfHost(u.Origin().Host()), lua.HasSeen, func(m client.Reply) error {
		found, err := m.AsInt64()
		seen = found == 1
		return err
	}, u.Origin().String(), fingerprintArg(storage.Fingerprint(u)))
	return seen, err
}

// SeenURLFingerprints implements storage.Inspector. If URLs are added meanwhile, fingerprints may be
// reported twice.
func (n *inspector) SeenURLFingerprints(
	ctx context.Context, o decorum.Origin, yield func(fingerprint uint64) bool,
) error {
	ctx, end, err := n.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	// Each script call returns one bucket, and how many there are by now.
	for i, parts := 0, int64(1); int64(i) < parts; i++ {
		var fingerprints []string
		err := n.client.RunQuery(ctx, n.client.PartitionOfHost(o.Host()), lua.ListSeen, func(m client.Reply) error {
			f := client.NewReplyReader(m)
			parts, fingerprints = f.ReadInt(), f.ReadStrings()
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
