package bolt

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/internal/binaryrecord"
	"github.com/decorum-crawler/decorum/storage"
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

// An admittedHostCounter counts the hosts of AdmitHostsWithinLimits. It requires the lock of the
// store.
type admittedHostCounter struct {
	damage       *damageReporter
	pending      unwrittenNewHosts // counted since the last write
	beingWritten unwrittenNewHosts
	total        int // hosts counted
}

// count looks up a host and the number of its domain.
func (c *admittedHostCounter) count(tx *bbolt.Tx, h storage.HostToAdmit) (storage.AdmittedHostTotals, error) {
	count := storage.AdmittedHostTotals{Hosts: c.total, DomainHosts: -1}
	key := domainHostKey(h.Domain, h.Host)
	for _, l := range []unwrittenNewHosts{c.pending, c.beingWritten} { // the newest first
		if _, found := l.hosts[string(key)]; found {
			count.IncludesHost = true
		}
		if n, found := l.hostCountByDomain[h.Domain]; found && count.DomainHosts < 0 {
			count.DomainHosts = n
		}
	}
	bucket := newChecksummedBucket(tx, bucketHostCounts)
	counted, err := bucket.get(key)
	if err != nil {
		return count, c.damage.errorf("host %q of %q: %v", h.Host, h.Domain, err)
	}
	count.IncludesHost = count.IncludesHost || counted != nil
	if count.DomainHosts >= 0 {
		return count, nil
	}
	n, err := readDomainHostTotal(bucket, h.Domain)
	if err != nil {
		return count, c.damage.errorf("hosts of %q: %v", h.Domain, err)
	}
	count.DomainHosts = n
	return count, nil
}

// add counts a host, the n-th of its domain.
func (c *admittedHostCounter) add(h storage.HostToAdmit, n int) {
	if c.pending.hosts == nil {
		c.pending = unwrittenNewHosts{hosts: make(map[string]struct{}), hostCountByDomain: make(map[string]int)}
	}
	c.total++
	// The names may be parts of a long URL: a copy does not keep it in memory.
	c.pending.hosts[string(domainHostKey(h.Domain, h.Host))] = struct{}{}
	c.pending.hostCountByDomain[strings.Clone(h.Domain)] = n
}

// takePending takes the new hosts for the next write.
func (c *admittedHostCounter) takePending() unwrittenNewHosts {
	c.beingWritten, c.pending = c.pending, unwrittenNewHosts{}
	c.beingWritten.totalHostCount = c.total
	return c.beingWritten
}

// write writes the new hosts in the order of their keys.
func (c *unwrittenNewHosts) write(tx *bbolt.Tx) error {
	if len(c.hosts) == 0 {
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
	b := newChecksummedBucket(tx, bucketHostCounts)
	b.FillPercent = fillPercent
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := b.setOrDelete([]byte(key), values[key]); err != nil {
			return err
		}
	}
	return nil
}

// load creates the bucket if the file lacks it, and reads how many hosts it
// holds.
func (c *admittedHostCounter) load(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte(bucketHostCounts))
	if err != nil {
		return err
	}
	if c.total, err = readDomainHostTotal(checksummedBucket{Bucket: b}, ""); err != nil {
		return c.damage.errorf("number of hosts: %v", err)
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
		return 0, binaryrecord.ErrDamaged
	}
	return int(n), nil
}
