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

// refusedNote is the note of the crawl itself that counts what Discover refused,
// in all runs.
const refusedNote = "refused"

// Bounds of what is counted: what is beyond counts for no host, and longer
// examples are cut.
const (
	mostRefused    = 2000
	longestExample = 300
)

// A Refused counts sightings of URLs that do not belong to the crawl, of one host
// and for one reason. A URL that is found on ten pages counts ten times.
type Refused struct {
	Host    string `json:"host"` // empty: various
	Reason  Reason `json:"reason"`
	Count   int64  `json:"count"`
	Why     string `json:"why"`     // of the first
	Example string `json:"example"` // the first
}

type refusedKey struct {
	host   string
	reason Reason
}

// refused is what this Frontier has refused, and what of it is not in the note.
type refused struct {
	mu      sync.Mutex
	reasons map[Reason]int64
	unkept  map[refusedKey]*Refused
}

// refuse counts an entry that does not belong to the crawl.
func (f *Frontier) refuse(e storage.Entry, why error) {
	f.refused.count(e, why)
	if f.cfg.Refused != nil {
		f.cfg.Refused(e, why)
	}
}

func (r *refused) count(e storage.Entry, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason := ReasonOf(why)
	if r.reasons == nil {
		r.reasons = map[Reason]int64{}
	}
	r.reasons[reason]++
	one := Refused{Reason: reason, Count: 1, Why: why.Error(), Example: e.URL.String()}
	var refusal *Refusal
	if errors.As(why, &refusal) {
		one.Why = refusal.Why
	}
	if reason != Elsewhere { // of hosts that are not the crawl's there is no end
		one.Host = e.URL.Origin().Host()
	}
	add(&r.unkept, one)
}

// add adds up what is of the same host and reason.
func add(to *map[refusedKey]*Refused, r Refused) {
	if *to == nil {
		*to = map[refusedKey]*Refused{}
	}
	key := refusedKey{r.Host, r.Reason}
	if (*to)[key] == nil && len(*to) >= mostRefused {
		key.host, r.Host = "", ""
	}
	if (*to)[key] == nil {
		r.Example = r.Example[:min(len(r.Example), longestExample)]
		(*to)[key] = &r
		return
	}
	(*to)[key].Count += r.Count
}

// Refusals returns how many sightings of URLs this Frontier has refused, by
// reason.
func (f *Frontier) Refusals() map[Reason]int64 {
	f.refused.mu.Lock()
	defer f.refused.mu.Unlock()
	return maps.Clone(f.refused.reasons)
}

// KeepRefusals adds what was refused since the last call to what the store has
// of it. What is refused after the last call is not counted for good.
func (f *Frontier) KeepRefusals(ctx context.Context) error {
	f.refused.mu.Lock()
	defer f.refused.mu.Unlock()
	if len(f.refused.unkept) == 0 {
		return nil
	}
	kept, err := KeptRefusals(ctx, f.store)
	if err != nil {
		return err
	}
	var all map[refusedKey]*Refused
	for _, r := range kept {
		add(&all, r)
	}
	for _, r := range f.refused.unkept {
		add(&all, *r)
	}
	list := make([]*Refused, 0, len(all))
	for _, r := range all {
		list = append(list, r)
	}
	slices.SortFunc(list, (*Refused).compare)
	note, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("keep refusals: %w", err)
	}
	if err := f.store.SetNote(ctx, decorum.Origin{}, refusedNote, note); err != nil {
		return err
	}
	f.refused.unkept = nil
	return nil
}

// KeptRefusals returns what the crawl in the store has refused in all runs, most
// first. A note that cannot be read says nothing.
func KeptRefusals(ctx context.Context, store storage.Store) (list []Refused, err error) {
	note, err := store.Note(ctx, decorum.Origin{}, refusedNote)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(note, &list) != nil {
		return nil, nil
	}
	return list, nil
}

// compare puts what was refused most first.
func (r *Refused) compare(s *Refused) int {
	return cmp.Or(cmp.Compare(s.Count, r.Count), strings.Compare(r.Host, s.Host), strings.Compare(string(r.Reason), string(s.Reason)))
}
