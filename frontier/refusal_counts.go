package frontier

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/registrable"
	"github.com/decorum-crawler/decorum/storage"
)

// Notes of the crawl itself that count, in all runs, what Discover refused, and
// what it took an id of a session off.
const (
	refusalsNoteKey   = "refused"
	sessionIDsNoteKey = "cleaned"
)

// Bounds of what is counted: what is beyond counts for no host, and longer
// examples are cut.
const (
	maxRefusalCounts = 2000
	maxExampleLength = 300
)

// A RefusalCount counts sightings of URLs that were not queued as they were found, of
// one host and for one reason. A URL that is found on ten pages counts ten times.
type RefusalCount struct {
	Host    string        `json:"host"` // empty: various
	Reason  RefusalReason `json:"reason"`
	Count   int64         `json:"count"`
	Why     string        `json:"why"`     // of the first
	Example string        `json:"example"` // the first
}

type refusalKey struct {
	host   string
	reason RefusalReason
}

// A refusalCounter counts sightings of URLs by host and reason, and adds them to a note of the
// crawl.
type refusalCounter struct {
	noteKey   string
	onRefused func(storage.Entry, error) // observes each refusal; nil: nobody

	mu       sync.Mutex                   // guards the two maps
	byReason map[RefusalReason]int64      // since New
	unsaved  map[refusalKey]*RefusalCount // not in the note yet
}

// countAndReport counts an entry that does not belong to the crawl, and reports it to onRefused.
func (s *refusalCounter) countAndReport(e storage.Entry, why error) {
	c := RefusalCount{Reason: RefusalReasonOf(why), Why: why.Error(), Example: e.URL.String()}
	if refusal, ok := errors.AsType[*Refusal](why); ok {
		c.Why = refusal.Detail
	}
	switch c.Reason {
	case OutsideScope, TooManyHosts, LowMemory: // the hosts outside of the crawl are unlimited in number
	case TooManyDomainHosts:
		c.Host = registrable.Domain(e.URL.Origin().Host())
	default:
		c.Host = e.URL.Origin().Host()
	}
	s.countOne(c)
	if s.onRefused != nil {
		s.onRefused(e, why)
	}
}

// countSessionIDRemoval counts a URL of the crawl that was found with the id of a session in
// its path: a site that puts a new one into every link has pages without end, of which no
// limit tells.
func (s *refusalCounter) countSessionIDRemoval(found decorum.URL) {
	s.countOne(RefusalCount{
		Host: found.Origin().Host(), Reason: SessionID, Why: "the id of a session in the path is taken off", Example: found.String(),
	})
}

// countOne counts one sighting.
func (s *refusalCounter) countOne(c RefusalCount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byReason == nil {
		s.byReason = map[RefusalReason]int64{}
	}
	s.byReason[c.Reason]++
	c.Count = 1
	addRefusalCount(&s.unsaved, c)
}

// addRefusalCount adds up what is of the same host and reason.
func addRefusalCount(dst *map[refusalKey]*RefusalCount, s RefusalCount) {
	if *dst == nil {
		*dst = map[refusalKey]*RefusalCount{}
	}
	key := refusalKey{s.Host, s.Reason}
	if (*dst)[key] == nil && len(*dst) >= maxRefusalCounts {
		key.host, s.Host = "", ""
	}
	if (*dst)[key] == nil {
		s.Example = s.Example[:min(len(s.Example), maxExampleLength)]
		(*dst)[key] = &s
		return
	}
	(*dst)[key].Count += s.Count
}

// RefusalsByReason returns how many sightings of URLs this Frontier has refused, by
// reason.
func (f *Frontier) RefusalsByReason() map[RefusalReason]int64 {
	return f.refusals.countsByReason()
}

// countsByReason returns how many sightings were counted, by reason.
func (s *refusalCounter) countsByReason() map[RefusalReason]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byReason)
}

// SaveRefusalAndSessionIDCounts adds what was refused and cleaned since the last call to what
// the store has of it. What comes after the last call is not counted for good.
func (f *Frontier) SaveRefusalAndSessionIDCounts(ctx context.Context) error {
	return errors.Join(f.refusals.save(ctx, f.store), f.sessionIDRemovals.save(ctx, f.store))
}

// save adds what was counted since the last call to the note. What cannot be saved is saved by a
// later call.
func (s *refusalCounter) save(ctx context.Context, notes storage.Notes) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unsaved) == 0 {
		return nil
	}
	stored, err := loadRefusalCounts(ctx, notes, s.noteKey)
	if err != nil {
		return err
	}
	var all map[refusalKey]*RefusalCount
	for _, c := range stored {
		addRefusalCount(&all, c)
	}
	for _, c := range s.unsaved {
		addRefusalCount(&all, *c)
	}
	note, err := json.Marshal(slices.SortedFunc(maps.Values(all), (*RefusalCount).compareByCount))
	if err != nil {
		return fmt.Errorf("keep what was %s: %w", s.noteKey, err)
	}
	if err := notes.SetNote(ctx, decorum.Origin{}, s.noteKey, note); err != nil {
		return err
	}
	s.unsaved = nil
	return nil
}

// LoadRefusalCounts returns what the crawl with these notes has refused in all runs, most
// first. A note that cannot be read says nothing.
func LoadRefusalCounts(ctx context.Context, notes storage.Notes) ([]RefusalCount, error) {
	return loadRefusalCounts(ctx, notes, refusalsNoteKey)
}

// LoadStrippedSessionIDCounts returns what the crawl with these notes has taken ids of sessions
// off in all runs, most first. A note that cannot be read says nothing.
func LoadStrippedSessionIDCounts(ctx context.Context, notes storage.Notes) ([]RefusalCount, error) {
	return loadRefusalCounts(ctx, notes, sessionIDsNoteKey)
}

func loadRefusalCounts(ctx context.Context, notes storage.Notes, name string) (list []RefusalCount, err error) {
	note, err := notes.ReadNote(ctx, decorum.Origin{}, name)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(note, &list) != nil {
		return nil, nil
	}
	return list, nil
}

// compareByCount puts what was seen most first.
func (s *RefusalCount) compareByCount(t *RefusalCount) int {
	return cmp.Or(cmp.Compare(t.Count, s.Count), strings.Compare(s.Host, t.Host), strings.Compare(string(s.Reason), string(t.Reason)))
}
