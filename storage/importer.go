package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An Importer is a Store that takes over the contents of another Store, as read through an
// Inspector. Lease must not be called during an import.
type Importer interface {
	// Import adds the dumps, those of one origin in their order. It sets the host's clock and the
	// hold; it adds each URL in its state, behind the URLs of its class and rank or at its time;
	// and it adds the fingerprints to the seen set.
	//
	// Import may be repeated: it skips URLs and fingerprints that the seen set holds, and
	// HostState.Due never moves back. Only redirects of a robots.txt (RobotsFor set) are added
	// again, since the seen set does not hold them. If ValidateDumps returns an error, Import
	// returns it and changes nothing. The changes survive a crash once a Flush after Import has
	// returned.
	Import(ctx context.Context, dumps []OriginDump) error
}

// An OriginDump is the contents of a Store for one origin, or a part of it.
type OriginDump struct {
	Origin    decorum.Origin // must not be zero
	HostState *HostState     // the clock of the host; nil leaves the clock and the hold unchanged
	HeldUntil time.Time      // as OriginInfo.HeldUntil; used only with a HostState
	Suspended bool           // as OriginInfo.Suspended; used only with a HostState
	URLs      []StoredEntry  // in the order of their queues
	// SeenURLFingerprints are the RequestFingerprints of entries that were ever queued. Those of a
	// URL that a later dump of the origin has in URLs must not be in an earlier dump: Import would
	// skip the URL as a duplicate. Within one dump, URLs are added first.
	SeenURLFingerprints []uint64
}

// A StoredEntry is an Entry with the state in which a Store keeps it.
type StoredEntry struct {
	Entry
	State EntryState
	// NotBefore is, in StateQueued, the retry time (zero: none), and in StateAwaitingRevisit the
	// time of the revisit.
	NotBefore time.Time
}

// validate returns an error if a Store must refuse the dump.
func (p *OriginDump) validate() error {
	if p.Origin.IsZero() {
		return errors.New("a dump without an origin")
	}
	if p.HostState != nil && len(p.HostState.EncodedStats) > MaxStatsBytes {
		return fmt.Errorf("statistics of host %v: %d bytes, at most %d are allowed", p.Origin.Host(),
			len(p.HostState.EncodedStats), MaxStatsBytes)
	}
	for i := range p.URLs {
		if err := p.URLs[i].check(p.Origin); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if a Store must refuse k as a URL of the origin.
func (k *StoredEntry) check(o decorum.Origin) error {
	if err := k.Entry.Validate(); err != nil {
		return err
	}
	switch {
	case k.URL.Origin() != o:
		return fmt.Errorf("%v does not belong to origin %v", k.URL, o)
	case k.State > StateParked:
		return fmt.Errorf("%v: unknown state %d", k.URL, k.State)
	case k.State == StateAwaitingRevisit && !k.RobotsFor.IsZero():
		return fmt.Errorf("%v: a redirect of a robots.txt cannot await a revisit", k.URL)
	}
	return nil
}
