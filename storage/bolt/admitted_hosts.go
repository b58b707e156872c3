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

// domainHostKey returns a key of the bucket counted, which has the hosts that AdmitHostsWithinLimits
// has counted: the domain, a zero byte and the host. Its value is empty. The key without a host has
// the number of the domain's hosts; the key without a domain has the number of all hosts. The hosts of
// a domain are thus neighbours in the file, so that a domain with endless host names changes few
// pages.
func domainHostKey(domain, host string) []byte { return []byte(domain + "\x00" + host) }

// unwrittenNewHosts are the hosts that AdmitHostsWithinLimits has counted and the file does not have
// yet.
type unwrittenNewHosts struct {
	hosts             map[string]struct{} // new hosts, by domainHostKey
	hostCountByDomain map[string]int      // number of all hosts of each domain that has a new one
	totalHostCount    int                 // number of all hosts of the crawl
}

// An admittedHostCounter counts the hosts of AdmitHostsWithinLimits. Its methods require engine.mu.
type admittedHostCounter struct {
	damage       *damageReporter
	pending      unwrittenNewHosts // counted since the last batch was made
	beingWritten unwrittenNewHosts // in journal.batchToWrite
	total        int               // all hosts
}

// count returns the totals for a host, from the memory and the file.
func (c *admittedHostCounter) count(tx *bbolt.Tx, h storage.HostToAdmit) (storage.AdmittedHostTotals, error) {
	// Look in memory first; DomainHosts stays -1 if the domain has no new host.
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
	// Then look in the file.
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

// add counts a new host, the n-th of its domain.
func (c *admittedHostCounter) add(h storage.HostToAdmit, n int) {
	if c.pending.hosts == nil {
		c.pending = unwrittenNewHosts{hosts: make(map[string]struct{}), hostCountByDomain: make(map[string]int)}
	}
	c.total++
	// The names may be substrings of a long URL: the copies do not keep the URL in memory.
	c.pending.hosts[string(domainHostKey(h.Domain, h.Host))] = struct{}{}
	c.pending.hostCountByDomain[strings.Clone(h.Domain)] = n
}

// takePending returns the pending hosts for the next batch. They stay in beingWritten until
// journal.markBatchWritten.
func (c *admittedHostCounter) takePending() unwrittenNewHosts {
	c.beingWritten, c.pending = c.pending, unwrittenNewHosts{}
	c.beingWritten.totalHostCount = c.total
	return c.beingWritten
}

// write writes the new hosts and the totals, in the order of their keys.
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
	// Neighbouring keys share a page, so write in the order of the keys.
	b := newChecksummedBucket(tx, bucketHostCounts)
	b.FillPercent = fillPercent
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := b.setOrDelete([]byte(key), values[key]); err != nil {
			return err
		}
	}
	return nil
}

// load creates the bucket if the file does not have it, and reads the number of hosts.
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

// readDomainHostTotal returns the number of hosts of a domain, or of the whole crawl for the empty
// domain.
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
