package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An Importer is a Store that takes over what an Inspector told of another. While
// it does, nobody may lease from it.
type Importer interface {
	// Import puts the dumps where they belong, those of an origin in their order:
	// clock and hold; URLs in the states in which they were, each behind what is there
	// of its class and rank, or at its time; fingerprints. What the seen set holds is
	// passed by, and HostState.Due never moves back, so that a call may be made again: only
	// hops (RobotsFor set), which pass by the seen set, are then there once more. A dump that
	// Check refuses has the call refused whole. Only after a Flush does it survive a crash.
	Import(ctx context.Context, dumps []OriginDump) error
}

// An OriginDump is what a Store held of an origin, or some of it.
type OriginDump struct {
	Origin    decorum.Origin // whose it was
	HostState *HostState     // the clock of the host; nil leaves it, and the hold, as they are
	HeldUntil time.Time      // as OriginInfo.HeldUntil
	Suspended bool           // as OriginInfo.Suspended
	URLs      []StoredEntry  // in the order of their queues
	// SeenURLFingerprints are Fingerprints of entries that were queued once. Those of URLs that are
	// kept must come after these, or they would be taken for known.
	SeenURLFingerprints []uint64
}

// A StoredEntry is a URL and where a Store keeps it.
type StoredEntry struct {
	Entry
	State     EntryState // where it is kept
	NotBefore time.Time  // StateQueued: until when it is put off, zero if it is not; StateAwaitingRevisit: when its revisit is due
}

// validate returns an error if no Store may take the dump.
func (p *OriginDump) validate() error {
	if p.Origin.IsZero() {
		return errors.New("a parcel of no origin")
	}
	if p.HostState != nil && len(p.HostState.EncodedStats) > MaxStatsBytes {
		return fmt.Errorf("memo of %v: %d bytes, the most is %d", p.Origin.Host(), len(p.HostState.EncodedStats), MaxStatsBytes)
	}
	for i := range p.URLs {
		if err := p.URLs[i].check(p.Origin); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if no Store may keep k, as a URL of the origin.
func (k *StoredEntry) check(o decorum.Origin) error {
	if err := k.Entry.Validate(); err != nil {
		return err
	}
	switch {
	case k.URL.Origin() != o:
		return fmt.Errorf("%v is no URL of %v", k.URL, o)
	case k.State > StateParked:
		return fmt.Errorf("%v: state %d is none", k.URL, k.State)
	case k.State == StateAwaitingRevisit && !k.RobotsFor.IsZero():
		return fmt.Errorf("%v rests, and is a hop of a robots.txt, which is asked for once", k.URL)
	}
	return nil
}
