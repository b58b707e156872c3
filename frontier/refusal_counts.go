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
	refusedNote = "refused"
	cleanedNote = "cleaned"
)

// Bounds of what is counted: what is beyond counts for no host, and longer
// examples are cut.
const (
	maxRefusalCounts = 2000
	maxExampleLength = 300
)

// A Sighted counts sightings of URLs that were not queued as they were found, of
// one host and for one reason. A URL that is found on ten pages counts ten times.
type Sighted struct {
	Host    string `json:"host"` // empty: various
	Reason  Reason `json:"reason"`
	Count   int64  `json:"count"`
	Why     string `json:"why"`     // of the first
	Example string `json:"example"` // the first
}

type sightedKey struct {
	host   string
	reason Reason
}

// sightings is what this Frontier has seen, and what of it is not in the note.
type sightings struct {
	note    string
	mu      sync.Mutex
	reasons map[Reason]int64
	unkept  map[sightedKey]*Sighted
}

// refuse counts an entry that does not belong to the crawl.
func (f *Frontier) refuse(e storage.Entry, why error) {
	one := Sighted{Reason: ReasonOf(why), Why: why.Error(), Example: e.URL.String()}
	var refusal *Refusal
	if errors.As(why, &refusal) {
		one.Why = refusal.Why
	}
	switch one.Reason {
	case Elsewhere, ManyHosts, LowMemory: // the hosts outside of the crawl are unlimited in number
	case ManyHostsOfDomain:
		one.Host = RegistrableDomain(e.URL.Origin().Host())
	default:
		one.Host = e.URL.Origin().Host()
	}
	f.refused.count(one)
	if f.cfg.Refused != nil {
		f.cfg.Refused(e, why)
	}
}

// noteSession counts an entry of the crawl that was found with the id of a
// session in its path: a site that puts a new one into every link has pages
// without end, of which no limit tells.
func (f *Frontier) noteSession(found decorum.URL, e storage.Entry) {
	path, _, _ := strings.Cut(found.Path(), "?")
	if withoutSession(path, func(Change) {}) == path || f.InScope(e) != nil {
		return
	}
	f.cleaned.count(Sighted{Host: found.Origin().Host(), Reason: SessionID, Why: "the id of a session in the path is taken off", Example: found.String()})
}

func (s *sightings) count(one Sighted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reasons == nil {
		s.reasons = map[Reason]int64{}
	}
	s.reasons[one.Reason]++
	one.Count = 1
	add(&s.unkept, one)
}

// add adds up what is of the same host and reason.
func add(to *map[sightedKey]*Sighted, s Sighted) {
	if *to == nil {
		*to = map[sightedKey]*Sighted{}
	}
	key := sightedKey{s.Host, s.Reason}
	if (*to)[key] == nil && len(*to) >= maxRefusalCounts {
		key.host, s.Host = "", ""
	}
	if (*to)[key] == nil {
		s.Example = s.Example[:min(len(s.Example), maxExampleLength)]
		(*to)[key] = &s
		return
	}
	(*to)[key].Count += s.Count
}

// Refusals returns how many sightings of URLs this Frontier has refused, by
// reason.
func (f *Frontier) Refusals() map[Reason]int64 {
	f.refused.mu.Lock()
	defer f.refused.mu.Unlock()
	return maps.Clone(f.refused.reasons)
}

// KeepSightings adds what was refused and cleaned since the last call to what
// the store has of it. What comes after the last call is not counted for good.
func (f *Frontier) KeepSightings(ctx context.Context) error {
	return errors.Join(f.refused.keep(ctx, f.store), f.cleaned.keep(ctx, f.store))
}

func (s *sightings) keep(ctx context.Context, store storage.Store) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unkept) == 0 {
		return nil
	}
	stored, err := loadCounts(ctx, store, s.note)
	if err != nil {
		return err
	}
	var all map[sightedKey]*Sighted
	for _, one := range stored {
		add(&all, one)
	}
	for _, one := range s.unkept {
		add(&all, *one)
	}
	note, err := json.Marshal(slices.SortedFunc(maps.Values(all), (*Sighted).compare))
	if err != nil {
		return fmt.Errorf("keep what was %s: %w", s.note, err)
	}
	if err := store.SetNote(ctx, decorum.Origin{}, s.note, note); err != nil {
		return err
	}
	s.unkept = nil
	return nil
}

// LoadRefusalCounts returns what the crawl in the store has refused in all runs, most
// first. A note that cannot be read says nothing.
func LoadRefusalCounts(ctx context.Context, store storage.Store) ([]Sighted, error) {
	return loadCounts(ctx, store, refusedNote)
}

// LoadSessionIDCounts returns what the crawl in the store has taken ids of sessions
// off in all runs, most first. A note that cannot be read says nothing.
func LoadSessionIDCounts(ctx context.Context, store storage.Store) ([]Sighted, error) {
	return loadCounts(ctx, store, cleanedNote)
}

func loadCounts(ctx context.Context, store storage.Store, name string) (list []Sighted, err error) {
	note, err := store.ReadNote(ctx, decorum.Origin{}, name)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(note, &list) != nil {
		return nil, nil
	}
	return list, nil
}

// compare puts what was seen most first.
func (s *Sighted) compare(t *Sighted) int {
	return cmp.Or(cmp.Compare(t.Count, s.Count), strings.Compare(s.Host, t.Host), strings.Compare(string(s.Reason), string(t.Reason)))
}
