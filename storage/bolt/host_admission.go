package bolt

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// The bucket counted holds the hosts that AdmitHosts counted. A key is the
// domain, a zero byte and the host, and its value is empty. A key without a host
// has the number of the domain's hosts; the key without a domain has the number
// of all. So the hosts of a domain are neighbours in the file: endless names of
// one domain change few pages.
func hostCounterKey(domain, host string) []byte { return []byte(domain + "\x00" + host) }

// newHosts is what AdmitHosts counted and the file does not hold yet.
type newHosts struct {
	hosts   map[string]struct{} // by hostCounterKey
	domains map[string]int      // hosts of each domain that has a new one
	total   int                 // hosts of the crawl
}

// hostCounterState is the state of AdmitHosts. It requires the lock of Store.
type hostCounterState struct {
	pending *newHosts // counted since the last write; nil: none
	writing *newHosts // being written; nil: none
	total   int       // hosts counted
}

// unwrittenHosts returns the hosts that the file lacks, the newest first.
func (c *hostCounterState) unwrittenHosts() []*newHosts {
	layers := make([]*newHosts, 0, 2)
	for _, l := range []*newHosts{c.pending, c.writing} {
		if l != nil {
			layers = append(layers, l)
		}
	}
	return layers
}

// AdmitHosts implements storage.Store.
func (s *Store) AdmitHosts(
	ctx context.Context, hosts []storage.HostToAdmit, limits storage.HostCountLimits,
) ([]storage.NewHostResult, error) {
	if err := storage.ValidateHostsToAdmit(hosts); err != nil {
		return nil, err
	}
	if err := s.lockForChange(ctx); err != nil {
		return nil, err
	}
	defer s.trimAndUnlock()
	results := make([]storage.NewHostResult, len(hosts))
	err := s.view(func(tx *bbolt.Tx) error {
		for i, h := range hosts {
			count, err := s.readHostCounts(tx, h)
			if err != nil {
				return err
			}
			results[i] = limits.AdmitResult(count, h.IgnoreLimits)
			if results[i] == storage.HostAdmitted {
				s.recordNewHost(h, count.DomainHosts+1)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// HostCountsFor implements storage.Store.
func (s *Store) AdmittedHostCountsFor(ctx context.Context, h storage.HostToAdmit) (count storage.AdmittedHostCounts, err error) {
	if err := s.lockForRead(ctx); err != nil {
		return count, err
	}
	defer s.trimAndUnlock()
	err = s.view(func(tx *bbolt.Tx) error {
		count, err = s.readHostCounts(tx, h)
		return err
	})
	return count, err
}

// readHostCounts looks up a host and the number of its domain.
func (s *Store) readHostCounts(tx *bbolt.Tx, h storage.HostToAdmit) (storage.AdmittedHostCounts, error) {
	count := storage.AdmittedHostCounts{Hosts: s.hostCounterState.total, DomainHosts: -1}
	key := hostCounterKey(h.Domain, h.Host)
	for _, l := range s.hostCounterState.unwrittenHosts() {
		if _, found := l.hosts[string(key)]; found {
			count.IncludesHost = true
		}
		if n, found := l.domains[h.Domain]; found && count.DomainHosts < 0 {
			count.DomainHosts = n
		}
	}
	bucket := openBucket(tx, bucketHostCounts)
	counted, err := bucket.get(key)
	if err != nil {
		return count, s.damageError("host %q of %q: %v", h.Host, h.Domain, err)
	}
	count.IncludesHost = count.IncludesHost || counted != nil
	if count.DomainHosts >= 0 {
		return count, nil
	}
	n, err := readDomainHostTotal(bucket, h.Domain)
	if err != nil {
		return count, s.damageError("hosts of %q: %v", h.Domain, err)
	}
	count.DomainHosts = n
	return count, nil
}

// recordNewHost counts a host, the n-th of its domain.
func (s *Store) recordNewHost(h storage.HostToAdmit, n int) {
	if s.hostCounterState.pending == nil {
		s.hostCounterState.pending = &newHosts{hosts: make(map[string]struct{}), domains: make(map[string]int)}
	}
	s.hostCounterState.total++
	// The names may be parts of a long URL: a copy does not keep it in memory.
	s.hostCounterState.pending.hosts[string(hostCounterKey(h.Domain, h.Host))] = struct{}{}
	s.hostCounterState.pending.domains[strings.Clone(h.Domain)] = n
	s.bufferedChanges++
}

// takeNewHosts takes the new hosts for the next write.
func (s *Store) takeNewHosts() *newHosts {
	if s.hostCounterState.pending == nil {
		return nil
	}
	s.hostCounterState.writing, s.hostCounterState.pending = s.hostCounterState.pending, nil
	s.hostCounterState.writing.total = s.hostCounterState.total
	return s.hostCounterState.writing
}

// markNewHostsWritten records that the new hosts of a write are in the file.
func (s *Store) markNewHostsWritten(c *newHosts) {
	if c != nil {
		s.bufferedChanges -= len(c.hosts)
		s.hostCounterState.writing = nil
	}
}

// unwrittenHostCount returns how many new hosts wait for the next write.
func (s *Store) unwrittenHostCount() int {
	if s.hostCounterState.pending == nil {
		return 0
	}
	return len(s.hostCounterState.pending.hosts)
}

// write writes the new hosts in the order of their keys.
func (c *newHosts) write(tx *bbolt.Tx) error {
	if c == nil {
		return nil
	}
	values := make(map[string][]byte, len(c.hosts)+len(c.domains)+1)
	for key := range c.hosts {
		values[key] = []byte{}
	}
	for domain, n := range c.domains {
		values[string(hostCounterKey(domain, ""))] = encodeUvarint(uint64(n))
	}
	values[string(hostCounterKey("", ""))] = encodeUvarint(uint64(c.total))
	b := openBucket(tx, bucketHostCounts)
	b.FillPercent = fillPercent
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := b.set([]byte(key), values[key]); err != nil {
			return err
		}
	}
	return nil
}

// loadHostCounts creates the bucket if the file lacks it, and reads how many hosts it
// holds.
func (s *Store) loadHostCounts(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte(bucketHostCounts))
	if err != nil {
		return err
	}
	if s.hostCounterState.total, err = readDomainHostTotal(checksummedBucket{Bucket: b}, ""); err != nil {
		return s.damageError("number of hosts: %v", err)
	}
	return nil
}

// readDomainHostTotal reads how many hosts a domain has; empty: the whole crawl.
func readDomainHostTotal(b checksummedBucket, domain string) (int, error) {
	value, err := b.get(hostCounterKey(domain, ""))
	if value == nil || err != nil {
		return 0, err
	}
	n, size := binary.Uvarint(value)
	if size != len(value) || n > 1<<53 {
		return 0, record.ErrDamaged
	}
	return int(n), nil
}
