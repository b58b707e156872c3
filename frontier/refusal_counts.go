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

// refusalCounter is what this Frontier has seen, and what of it is not in the note.
type refusalCounter struct {
	noteKey  string
	mu       sync.Mutex
	byReason map[RefusalReason]int64
	unsaved  map[refusalKey]*RefusalCount
}

// countAndReportRefusal counts an entry that does not belong to the crawl.
func (f *Frontier) countAndReportRefusal(e storage.Entry, why error) {
	c := RefusalCount{Reason: RefusalReasonOf(why), Why: why.Error(), Example: e.URL.String()}
	var refusal *Refusal
	if errors.As(why, &refusal) {
		c.Why = refusal.Detail
	}
	switch c.Reason {
	case OutsideScope, TooManyHosts, LowMemory: // the hosts outside of the crawl are unlimited in number
	case TooManyDomainHosts:
		c.Host = RegistrableDomain(e.URL.Origin().Host())
	default:
		c.Host = e.URL.Origin().Host()
	}
	f.refusals.countOne(c)
	if f.cfg.OnRefused != nil {
		f.cfg.OnRefused(e, why)
	}
}

// countPathSessionIDRemoval counts an entry of the crawl that was found with the id of a
// session in its path: a site that puts a new one into every link has pages
// without end, of which no limit tells.
func (f *Frontier) countPathSessionIDRemoval(found decorum.URL, e storage.Entry) {
	path, _, _ := strings.Cut(found.PathAndQuery(), "?")
	if stripSessionIDsFromPath(path, func(AppliedCleaningRule) {}) == path || f.CheckScope(e) != nil {
		return
	}
	f.sessionIDRemovalCounts.countOne(RefusalCount{Host: found.Origin().Host(), Reason: SessionID, Why: "the id of a session in the path is taken off", Example: found.String()})
}

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
	f.refusals.mu.Lock()
	defer f.refusals.mu.Unlock()
	return maps.Clone(f.refusals.byReason)
}

// SaveRefusalAndSessionIDCounts adds what was refused and cleaned since the last call to what
// the store has of it. What comes after the last call is not counted for good.
func (f *Frontier) SaveRefusalAndSessionIDCounts(ctx context.Context) error {
	return errors.Join(f.refusals.save(ctx, f.store), f.sessionIDRemovalCounts.save(ctx, f.store))
}

func (s *refusalCounter) save(ctx context.Context, store storage.Store) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unsaved) == 0 {
		return nil
	}
	stored, err := loadRefusalCounts(ctx, store, s.noteKey)
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
	if err := store.SetNote(ctx, decorum.Origin{}, s.noteKey, note); err != nil {
		return err
	}
	s.unsaved = nil
	return nil
}

// LoadRefusalCounts returns what the crawl in the store has refused in all runs, most
// first. A note that cannot be read says nothing.
func LoadRefusalCounts(ctx context.Context, store storage.Store) ([]RefusalCount, error) {
	return loadRefusalCounts(ctx, store, refusalsNoteKey)
}

// LoadStrippedSessionIDCounts returns what the crawl in the store has taken ids of sessions
// off in all runs, most first. A note that cannot be read says nothing.
func LoadStrippedSessionIDCounts(ctx context.Context, store storage.Store) ([]RefusalCount, error) {
	return loadRefusalCounts(ctx, store, sessionIDsNoteKey)
}

func loadRefusalCounts(ctx context.Context, store storage.Store, name string) (list []RefusalCount, err error) {
	note, err := store.ReadNote(ctx, decorum.Origin{}, name)
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
