package redis

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage"
)

// Hosts are counted in the first partition, whatever partition their URLs are in:
// one script sees the number of the domain and that of the whole crawl, so that
// all processes together keep to the limits. A host is kept as a fingerprint, in
// about nine bytes; a domain as a field of a hash, in about 80.

// hostPrint returns the fingerprint of a counted host.
func hostPrint(host string) string {
	h := fnv.New64a()
	h.Write([]byte(host))
	return printOf(h.Sum64())
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// AdmitHosts implements storage.Store. Its counts are as durable as what Add adds. If
// it fails, some hosts may have been counted.
func (s *Store) AdmitHosts(
	ctx context.Context, hosts []storage.HostAdmission, limits storage.HostLimits,
) ([]storage.HostFate, error) {
	if err := storage.CheckAdmissions(hosts); err != nil {
		return nil, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	first := []string{strconv.Itoa(limits.Hosts), strconv.Itoa(limits.PerDomain), digit(limits.RefuseNewHosts)}
	fates := make([]storage.HostFate, 0, len(hosts))
	for portion := range slices.Chunk(hosts, portionItems) {
		args := slices.Clone(first)
		for _, h := range portion {
			args = append(args, hostPrint(h.Host), h.Domain, digit(h.Always))
		}
		said, _, err := s.call(ctx, s.partitions[0], true, admitScript, args...)
		if err != nil {
			return nil, fmt.Errorf("admit hosts: %w", err)
		}
		if len(said) != len(portion) {
			return nil, fmt.Errorf("admit hosts: %w", errAnswer)
		}
		for i := range said {
			fate, ok := hostFates[said[i]]
			if !ok {
				return nil, fmt.Errorf("admit hosts: %w", errAnswer)
			}
			fates = append(fates, fate)
		}
	}
	return fates, nil
}

// hostFates are the letters that admit_hosts.lua returns.
var hostFates = map[byte]storage.HostFate{
	'a': storage.HostAdmitted, 'k': storage.HostKnown, 'c': storage.NewHostsRefused,
	'd': storage.DomainFull, 'f': storage.HostsFull,
}

// HostCount implements storage.Store.
func (s *Store) HostCount(ctx context.Context, h storage.HostAdmission) (storage.HostCount, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return storage.HostCount{}, err
	}
	defer end()
	var count storage.HostCount
	err = s.ask(ctx, s.partitions[0], hostCountScript, func(m rueidis.RedisMessage) error {
		f := fieldsOf(m)
		count = storage.HostCount{Hosts: int(f.int()), OfDomain: int(f.int()), Counted: f.int() == 1}
		return f.err
	}, hostPrint(h.Host), h.Domain)
	if err != nil {
		return storage.HostCount{}, fmt.Errorf("count hosts: %w", err)
	}
	return count, nil
}
