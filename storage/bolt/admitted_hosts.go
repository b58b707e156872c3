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
func domainHostKey(domain, host string) []byte { return []byte(domain + "\x00" + host) }

// unwrittenNewHosts is what AdmitHosts counted and the file does not hold yet.
type unwrittenNewHosts struct {
	hosts             map[string]struct{} // by domainHostKey
	hostCountByDomain map[string]int      // hosts of each domain that has a new one
	totalHostCount    int                 // hosts of the crawl
}

// admittedHostCounter is the state of AdmitHosts. It requires the lock of Store.
type admittedHostCounter struct {
	pendingHosts      *unwrittenNewHosts // counted since the last write; nil: none
	hostsBeingWritten *unwrittenNewHosts // being written; nil: none
	total             int                // hosts counted
}

// unwrittenNewHostSets returns the hosts that the file lacks, the newest first.
func (c *admittedHostCounter) unwrittenNewHostSets() []*unwrittenNewHosts {
	layers := make([]*unwrittenNewHosts, 0, 2)
	for _, l := range []*unwrittenNewHosts{c.pendingHosts, c.hostsBeingWritten} {
		if l != nil {
			layers = append(layers, l)
		}
	}
	return layers
}

// AdmitHostsWithinLimits implements storage.Store.
func (s *Store) AdmitHostsWithinLimits(
	ctx context.Context, hosts []storage.HostToAdmit, limits storage.HostAdmissionLimits,
) ([]storage.HostAdmissionResult, error) {
	if err := storage.ValidateHostsToAdmit(hosts); err != nil {
		return nil, err
	}
	if err := s.lockForChange(ctx); err != nil {
		return nil, err
	}
	defer s.trimUnlockAndCommitIfDue()
	results := make([]storage.HostAdmissionResult, len(hosts))
	err := s.file.view(func(tx *bbolt.Tx) error {
		for i, h := range hosts {
			count, err := s.countAdmittedHosts(tx, h)
			if err != nil {
				return err
			}
			results[i] = limits.CheckNewHost(count, h.IgnoreLimits)
			if results[i] == storage.HostAdmitted {
				s.addPendingNewHost(h, count.DomainHosts+1)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// AdmittedHostTotalsFor implements storage.Store.
func (s *Store) AdmittedHostTotalsFor(ctx context.Context, h storage.HostToAdmit) (count storage.HostAdmissionCounts, err error) {
	if err := s.lockIfOpen(ctx); err != nil {
		return count, err
	}
	defer s.trimUnlockAndCommitIfDue()
	err = s.file.view(func(tx *bbolt.Tx) error {
		count, err = s.countAdmittedHosts(tx, h)
		return err
	})
	return count, err
}

// countAdmittedHosts looks up a host and the number of its domain.
func (s *Store) countAdmittedHosts(tx *bbolt.Tx, h storage.HostToAdmit) (storage.HostAdmissionCounts, error) {
	count := storage.HostAdmissionCounts{Hosts: s.admittedHostCounter.total, DomainHosts: -1}
	key := domainHostKey(h.Domain, h.Host)
	for _, l := range s.admittedHostCounter.unwrittenNewHostSets() {
		if _, found := l.hosts[string(key)]; found {
			count.IncludesHost = true
		}
		if n, found := l.hostCountByDomain[h.Domain]; found && count.DomainHosts < 0 {
			count.DomainHosts = n
		}
	}
	bucket := openChecksummedBucket(tx, bucketHostCounts)
	counted, err := bucket.get(key)
	if err != nil {
		return count, s.damage.errorf("host %q of %q: %v", h.Host, h.Domain, err)
	}
	count.IncludesHost = count.IncludesHost || counted != nil
	if count.DomainHosts >= 0 {
		return count, nil
	}
	n, err := readDomainHostTotal(bucket, h.Domain)
	if err != nil {
		return count, s.damage.errorf("hosts of %q: %v", h.Domain, err)
	}
	count.DomainHosts = n
	return count, nil
}

// addPendingNewHost counts a host, the n-th of its domain.
func (s *Store) addPendingNewHost(h storage.HostToAdmit, n int) {
	if s.admittedHostCounter.pendingHosts == nil {
		s.admittedHostCounter.pendingHosts = &unwrittenNewHosts{hosts: make(map[string]struct{}), hostCountByDomain: make(map[string]int)}
	}
	s.admittedHostCounter.total++
	// The names may be parts of a long URL: a copy does not keep it in memory.
	s.admittedHostCounter.pendingHosts.hosts[string(domainHostKey(h.Domain, h.Host))] = struct{}{}
	s.admittedHostCounter.pendingHosts.hostCountByDomain[strings.Clone(h.Domain)] = n
	s.bufferedChangeCount++
}

// takeNewHosts takes the new hosts for the next write.
func (s *Store) takeNewHosts() *unwrittenNewHosts {
	if s.admittedHostCounter.pendingHosts == nil {
		return nil
	}
	s.admittedHostCounter.hostsBeingWritten, s.admittedHostCounter.pendingHosts = s.admittedHostCounter.pendingHosts, nil
	s.admittedHostCounter.hostsBeingWritten.totalHostCount = s.admittedHostCounter.total
	return s.admittedHostCounter.hostsBeingWritten
}

// markNewHostsWritten records that the new hosts of a write are in the file.
func (s *Store) markNewHostsWritten(c *unwrittenNewHosts) {
	if c != nil {
		s.bufferedChangeCount -= len(c.hosts)
		s.admittedHostCounter.hostsBeingWritten = nil
	}
}

// unwrittenHostCount returns how many new hosts wait for the next write.
func (s *Store) unwrittenHostCount() int {
	if s.admittedHostCounter.pendingHosts == nil {
		return 0
	}
	return len(s.admittedHostCounter.pendingHosts.hosts)
}

// write writes the new hosts in the order of their keys.
func (c *unwrittenNewHosts) write(tx *bbolt.Tx) error {
	if c == nil {
		return nil
	}
	values := make(map[string][]byte, len(c.hosts)+len(c.hostCountByDomain)+1)
	for key := range c.hosts {
		values[key] = []byte{}
	}
	for domain, n := range c.hostCountByDomain {
		values[string(domainHostKey(domain, ""))] = encodeUvarint(uint64(n))
	}
	values[string(domainHostKey("", ""))] = encodeUvarint(uint64(c.totalHostCount))
	b := openChecksummedBucket(tx, bucketHostCounts)
	b.FillPercent = fillPercent
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := b.setOrDelete([]byte(key), values[key]); err != nil {
			return err
		}
	}
	return nil
}

// loadTotalHostCount creates the bucket if the file lacks it, and reads how many hosts it
// holds.
func (s *Store) loadTotalHostCount(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte(bucketHostCounts))
	if err != nil {
		return err
	}
	if s.admittedHostCounter.total, err = readDomainHostTotal(checksummedBucket{Bucket: b}, ""); err != nil {
		return s.damage.errorf("number of hosts: %v", err)
	}
	return nil
}

// readDomainHostTotal reads how many hosts a domain has; empty: the whole crawl.
func readDomainHostTotal(b checksummedBucket, domain string) (int, error) {
	value, err := b.get(domainHostKey(domain, ""))
	if value == nil || err != nil {
		return 0, err
	}
	n, size := binary.Uvarint(value)
	if size != len(value) || n > 1<<53 {
		return 0, record.ErrDamaged
	}
	return int(n), nil
}
