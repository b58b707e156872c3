package redis

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// All admitted hosts are counted in the first partition, whichever partition holds their URLs. One
// script then sees the number of hosts of a domain and of the whole crawl, so that all processes
// together keep to the limits. A host takes about nine bytes, as a fingerprint; a domain takes
// about 80, as a field of a hash.

// hostFingerprintArg returns the fingerprint of a host (FNV-1a) as an argument of a script.
func hostFingerprintArg(host string) string {
	h := fnv.New64a()
	h.Write([]byte(host))
	return fingerprintArg(h.Sum64())
}

// hostAdmitter admits hosts to a crawl within its limits, and counts them.
type hostAdmitter struct{ client *client.Client }

// AdmitHostsWithinLimits implements storage.Store. Its counts are as durable as what Add adds. If
// it fails, some hosts may have been counted; another call returns HostAlreadyCounted for them.
func (c *hostAdmitter) AdmitHostsWithinLimits(
	ctx context.Context, hosts []storage.HostToAdmit, limits storage.HostCountLimits,
) ([]storage.HostLimitResult, error) {
	if err := storage.ValidateHostsToAdmit(hosts); err != nil {
		return nil, err
	}
	ctx, end, err := c.client.BeginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	commonArgs := []string{
		strconv.Itoa(limits.MaxHosts), strconv.Itoa(limits.MaxHostsPerDomain), client.BoolArg(limits.RefuseNewHosts),
	}
	results := make([]storage.HostLimitResult, 0, len(hosts))
	// A chunk is one script call, so the limits hold for it atomically.
	for chunk := range slices.Chunk(hosts, client.MaxBatchItems) {
		args := slices.Clone(commonArgs)
		for _, h := range chunk {
			args = append(args, hostFingerprintArg(h.Host), h.Domain, client.BoolArg(h.IgnoreLimits))
		}
		reply, _, err := c.client.RunUpdate(ctx, c.client.Partitions()[0], true, lua.AdmitHosts, args...)
		if err == nil && len(reply) != len(chunk) {
			err = client.ErrBadReply
		}
		if err != nil {
			return nil, fmt.Errorf("admit hosts: %w", err)
		}
		for i := range reply {
			result, ok := admitReplies[reply[i]]
			if !ok {
				return nil, fmt.Errorf("admit hosts: %w", client.ErrBadReply)
			}
			results = append(results, result)
		}
	}
	return results, nil
}

// admitReplies maps the letters that admit_hosts.lua returns to results.
var admitReplies = map[byte]storage.HostLimitResult{
	'a': storage.HostAdmitted, 'k': storage.HostAlreadyCounted, 'c': storage.NewHostsRefused,
	'd': storage.DomainLimitReached, 'f': storage.HostLimitReached,
}

// AdmittedHostTotalsFor implements storage.Store.
func (c *hostAdmitter) AdmittedHostTotalsFor(
	ctx context.Context, h storage.HostToAdmit,
) (storage.AdmittedHostTotals, error) {
	ctx, end, err := c.client.BeginCall(ctx)
	if err != nil {
		return storage.AdmittedHostTotals{}, err
	}
	defer end()
	var count storage.AdmittedHostTotals
	err = c.client.RunQuery(ctx, c.client.Partitions()[0], lua.HostCount, func(m client.Reply) error {
		f := client.NewReplyReader(m)
		count = storage.AdmittedHostTotals{
			Hosts: int(f.ReadInt()), DomainHosts: int(f.ReadInt()), IncludesHost: f.ReadInt() == 1,
		}
		return f.Err()
	}, hostFingerprintArg(h.Host), h.Domain)
	if err != nil {
		return storage.AdmittedHostTotals{}, fmt.Errorf("count hosts: %w", err)
	}
	return count, nil
}
