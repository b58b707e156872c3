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

// The notes of the crawl that count, over all runs, refused URLs, URLs that lost a session ID, and links
// and pages that were not followed.
const (
	refusalsNoteKey    = "refused"
	sessionIDsNoteKey  = "cleaned"
	notFollowedNoteKey = "not followed"
)

// Bounds of the counts: beyond maxRefusalCounts, refusals are counted together without host and
// reason. Examples are cut to maxExampleLength bytes.
const (
	maxRefusalCounts = 2000
	maxExampleLength = 300
)

// A RefusalCount counts how often URLs of one host were refused or rewritten for one reason. A URL
// that is found on ten pages counts ten times.
type RefusalCount struct {
	Host    string        `json:"host"`    // host of the URLs, or their domain; empty: several hosts
	Reason  RefusalReason `json:"reason"`  // why, in one word
	Count   int64         `json:"count"`   // how often URLs were found
	Why     string        `json:"why"`     // why in words, with the limit, for the first URL
	Example string        `json:"example"` // the first URL, at most 300 bytes
}

type refusalKey struct {
	host   string
	reason RefusalReason
}

// A refusalCounter counts refused or rewritten URLs by host and reason, and adds the counts to a
// note of the crawl.
type refusalCounter struct {
	noteKey   string
	onRefused func(storage.Entry, error) // called with each refusal; may be nil

	mu       sync.Mutex                   // guards byReason and unsaved; save holds it during calls of the store
	byReason map[RefusalReason]int64      // since New
	unsaved  map[refusalKey]*RefusalCount // not added to the note yet
}

// countAndReport counts a refused entry, and reports it to onRefused.
func (s *refusalCounter) countAndReport(e storage.Entry, why error) {
	c := RefusalCount{Reason: RefusalReasonOf(why), Why: why.Error(), Example: e.URL.String()}
	if refusal, ok := errors.AsType[*Refusal](why); ok {
		c.Why = refusal.Detail
	}
	switch c.Reason {
	case OutsideScope, TooManyHosts, LowMemory: // without a host, because their number is unlimited
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

// countSessionIDRemoval counts a URL of the crawl that was found with a session ID. A
// site that puts a new id into every link has endless URLs without reaching a limit, so the report
// names it.
func (s *refusalCounter) countSessionIDRemoval(found decorum.URL) {
	s.countOne(RefusalCount{
		Host: found.Origin().Host(), Reason: SessionID,
		Why: "a session ID was removed", Example: found.String(),
	})
}

// countOne adds c to the counts, with Count 1.
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

// addRefusalCount adds s to the count of the same host and reason.
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

// RefusalsByReason returns how many URLs this Frontier has refused, by reason. A URL counts each
// time.
func (f *Frontier) RefusalsByReason() map[RefusalReason]int64 {
	return f.refusals.countsByReason()
}

// countsByReason returns a copy of byReason.
func (s *refusalCounter) countsByReason() map[RefusalReason]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byReason)
}

// CountNoFollowLink counts a link that is not offered to the crawl because its page asks robots not to
// follow it, and returns true. It returns false if the crawl would refuse the link anyway, or has its URL
// from elsewhere. A link counts each time it is found.
func (f *Frontier) CountNoFollowLink(e storage.Entry, why string) bool {
	if f.WasRecentlyOffered(e.URL) {
		return false
	}
	if e.URL = f.cleanURL(e.URL); f.CheckScope(e) != nil {
		return false
	}
	f.notFollowed.countOne(RefusalCount{Host: e.URL.Origin().Host(), Reason: NoFollow, Why: why,
		Example: e.URL.String()})
	return true
}

// CountUnrenderedPage counts a page that has no links because a browser would run its scripts first, which
// fill the element mountPoint.
func (f *Frontier) CountUnrenderedPage(u decorum.URL, mountPoint string) {
	f.notFollowed.countOne(RefusalCount{Host: u.Origin().Host(), Reason: NeedsRendering, Example: u.String(),
		Why: "no links, and a mount point (" + mountPoint + "): needs rendering"})
}

// SaveRefusalAndSessionIDCounts adds the counts since the last call to the notes of the store.
// Counts after the last call are lost when the process ends.
func (f *Frontier) SaveRefusalAndSessionIDCounts(ctx context.Context) error {
	return errors.Join(f.refusals.save(ctx, f.store), f.sessionIDRemovals.save(ctx, f.store),
		f.notFollowed.save(ctx, f.store))
}

// save adds the unsaved counts to the note. If that fails, a later call saves them.
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
	// Add the unsaved counts to those of earlier runs, and keep the total within maxRefusalCounts.
	var all map[refusalKey]*RefusalCount
	for _, c := range stored {
		addRefusalCount(&all, c)
	}
	for _, c := range s.unsaved {
		addRefusalCount(&all, *c)
	}
	note, err := json.Marshal(slices.SortedFunc(maps.Values(all), (*RefusalCount).compareByCount))
	if err != nil {
		return fmt.Errorf("encode the counts of the note %q: %w", s.noteKey, err)
	}
	if err := notes.SetNote(ctx, decorum.Origin{}, s.noteKey, note); err != nil {
		return err
	}
	s.unsaved = nil
	return nil
}

// LoadRefusalCounts returns what the crawl with these notes has refused in all runs, the highest
// count first. It returns no counts if the note is malformed.
func LoadRefusalCounts(ctx context.Context, notes storage.Notes) ([]RefusalCount, error) {
	return loadRefusalCounts(ctx, notes, refusalsNoteKey)
}

// LoadStrippedSessionIDCounts returns how many URLs the crawl with these notes has removed session
// ids from in all runs, the highest count first. It returns no counts if the note is malformed.
func LoadStrippedSessionIDCounts(ctx context.Context, notes storage.Notes) ([]RefusalCount, error) {
	return loadRefusalCounts(ctx, notes, sessionIDsNoteKey)
}

// LoadNotFollowedCounts returns what CountNoFollowLink and CountUnrenderedPage have counted in all runs of
// the crawl with these notes, the highest count first. It returns no counts if the note is malformed.
func LoadNotFollowedCounts(ctx context.Context, notes storage.Notes) ([]RefusalCount, error) {
	return loadRefusalCounts(ctx, notes, notFollowedNoteKey)
}

// loadRefusalCounts returns the counts in the note of that name.
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

// compareByCount orders the highest count first.
func (s *RefusalCount) compareByCount(t *RefusalCount) int {
	return cmp.Or(cmp.Compare(t.Count, s.Count), strings.Compare(s.Host, t.Host),
		strings.Compare(string(s.Reason), string(t.Reason)))
}
