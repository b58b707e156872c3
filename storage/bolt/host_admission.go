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
func countedKey(domain, host string) []byte { return []byte(domain + "\x00" + host) }

// counting is what AdmitHosts counted and the file does not hold yet.
type counting struct {
	hosts   map[string]struct{} // by countedKey
	domains map[string]int      // hosts of each domain that has a new one
	all     int                 // hosts of the crawl
}

// hostCounts is the state of AdmitHosts. It requires the lock of Store.
type hostCounts struct {
	fresh  *counting // counted since the last write; nil: none
	sealed *counting // being written; nil: none
	all    int       // hosts counted
}

// layers returns the hosts that the file lacks, the newest first.
func (c *hostCounts) layers() []*counting {
	layers := make([]*counting, 0, 2)
	for _, l := range []*counting{c.fresh, c.sealed} {
		if l != nil {
			layers = append(layers, l)
		}
	}
	return layers
}

// AdmitHosts implements storage.Store.
func (s *Store) AdmitHosts(
	ctx context.Context, hosts []storage.HostAdmission, limits storage.HostLimits,
) ([]storage.HostFate, error) {
	if err := storage.CheckAdmissions(hosts); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	fates := make([]storage.HostFate, len(hosts))
	err := s.view(func(tx *bbolt.Tx) error {
		for i, h := range hosts {
			count, err := s.hostCount(tx, h)
			if err != nil {
				return err
			}
			fates[i] = limits.Fate(count, h.Always)
			if fates[i] == storage.HostAdmitted {
				s.countHost(h, count.OfDomain+1)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return fates, nil
}

// HostCount implements storage.Store.
func (s *Store) HostCount(ctx context.Context, h storage.HostAdmission) (count storage.HostCount, err error) {
	if err := s.lock(ctx); err != nil {
		return count, err
	}
	defer s.end()
	err = s.view(func(tx *bbolt.Tx) error {
		count, err = s.hostCount(tx, h)
		return err
	})
	return count, err
}

// hostCount looks up a host and the number of its domain.
func (s *Store) hostCount(tx *bbolt.Tx, h storage.HostAdmission) (storage.HostCount, error) {
	count := storage.HostCount{Hosts: s.counted.all, OfDomain: -1}
	key := countedKey(h.Domain, h.Host)
	for _, l := range s.counted.layers() {
		if _, there := l.hosts[string(key)]; there {
			count.Counted = true
		}
		if n, there := l.domains[h.Domain]; there && count.OfDomain < 0 {
			count.OfDomain = n
		}
	}
	bucket := bucketOf(tx, bucketCounted)
	counted, err := bucket.get(key)
	if err != nil {
		return count, s.damaged("host %q of %q: %v", h.Host, h.Domain, err)
	}
	count.Counted = count.Counted || counted != nil
	if count.OfDomain >= 0 {
		return count, nil
	}
	n, err := countedNumber(bucket, h.Domain)
	if err != nil {
		return count, s.damaged("hosts of %q: %v", h.Domain, err)
	}
	count.OfDomain = n
	return count, nil
}

// countHost counts a host, the n-th of its domain.
func (s *Store) countHost(h storage.HostAdmission, n int) {
	if s.counted.fresh == nil {
		s.counted.fresh = &counting{hosts: make(map[string]struct{}), domains: make(map[string]int)}
	}
	s.counted.all++
	// The names may be parts of a long URL: a copy does not keep it in memory.
	s.counted.fresh.hosts[string(countedKey(h.Domain, h.Host))] = struct{}{}
	s.counted.fresh.domains[strings.Clone(h.Domain)] = n
	s.held++
}

// sealCounted takes the new hosts for the next write.
func (s *Store) sealCounted() *counting {
	if s.counted.fresh == nil {
		return nil
	}
	s.counted.sealed, s.counted.fresh = s.counted.fresh, nil
	s.counted.sealed.all = s.counted.all
	return s.counted.sealed
}

// settleCounted records that the new hosts of a write are in the file.
func (s *Store) settleCounted(c *counting) {
	if c != nil {
		s.held -= len(c.hosts)
		s.counted.sealed = nil
	}
}

// unsavedHosts returns how many new hosts wait for the next write.
func (s *Store) unsavedHosts() int {
	if s.counted.fresh == nil {
		return 0
	}
	return len(s.counted.fresh.hosts)
}

// put writes the new hosts in the order of their keys.
func (c *counting) put(tx *bbolt.Tx) error {
	if c == nil {
		return nil
	}
	values := make(map[string][]byte, len(c.hosts)+len(c.domains)+1)
	for key := range c.hosts {
		values[key] = []byte{}
	}
	for domain, n := range c.domains {
		values[string(countedKey(domain, ""))] = number(uint64(n))
	}
	values[string(countedKey("", ""))] = number(uint64(c.all))
	b := bucketOf(tx, bucketCounted)
	b.FillPercent = fillPercent
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := b.set([]byte(key), values[key]); err != nil {
			return err
		}
	}
	return nil
}

// loadCounted creates the bucket if the file lacks it, and reads how many hosts it
// holds.
func (s *Store) loadCounted(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte(bucketCounted))
	if err != nil {
		return err
	}
	if s.counted.all, err = countedNumber(bucket{Bucket: b}, ""); err != nil {
		return s.damaged("number of hosts: %v", err)
	}
	return nil
}

// countedNumber reads how many hosts a domain has; empty: the whole crawl.
func countedNumber(b bucket, domain string) (int, error) {
	value, err := b.get(countedKey(domain, ""))
	if value == nil || err != nil {
		return 0, err
	}
	n, size := binary.Uvarint(value)
	if size != len(value) || n > 1<<53 {
		return 0, record.ErrDamaged
	}
	return int(n), nil
}
