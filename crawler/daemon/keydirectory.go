package daemon

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A keyring is what requests of a project are signed with, or were.
type keyring struct {
	origin string // where the directory of the keys is
	keys   []*botauth.Key
	valid  time.Duration // a signature is for so long
	last   time.Time     // none is made after this; zero: others may be
}

// KeyDirectory returns the directory of the origin that a host is: projects of one
// origin share it. Where all projects have the same, it is that, by whatever name a
// proxy in front asks.
func (s *supervisor) SigningKeyDirectory(host string) *botauth.Directory {
	return s.keyDirectory(host, time.Now())
}

func (s *supervisor) keyDirectory(host string, now time.Time) *botauth.Directory {
	keys := map[string][]*botauth.Key{} // by origin
	for _, ring := range s.keyrings(now) {
		for _, k := range ring.keys {
			if !slices.ContainsFunc(keys[ring.origin], func(other *botauth.Key) bool { return other.ID() == k.ID() }) {
				keys[ring.origin] = append(keys[ring.origin], k)
			}
		}
	}
	for _, origin := range slices.Sorted(maps.Keys(keys)) {
		if len(keys) == 1 || strings.EqualFold(origin, "https://"+host) {
			directory, _ := botauth.NewDirectory(origin, keys[origin]...) // it has been checked
			return directory
		}
	}
	return nil
}

// keyrings returns those by which a signature may be checked.
func (s *supervisor) keyrings(now time.Time) []keyring {
	var rings []keyring
	for _, r := range s.all() {
		rings = append(rings, r.keyring())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(append(rings, s.retired...), func(ring keyring) bool { return ring.isOver(now) })
}

// retire keeps the keys of a project that has been deleted and has ended, until its
// last signature runs out.
func (s *supervisor) retire(r *runner, now time.Time) {
	ring := r.keyring()
	if ring.last.IsZero() {
		ring.last = now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = slices.DeleteFunc(append(s.retired, ring), func(ring keyring) bool { return ring.isOver(now) })
}

// isOver reports whether no signature by these keys is valid any more.
func (k keyring) isOver(now time.Time) bool {
	return len(k.keys) == 0 || !k.last.IsZero() && now.After(k.last.Add(k.valid))
}

// keyring returns what requests of the project are signed with. One whose file is gone
// signs no more once it has stopped.
func (r *runner) keyring() keyring {
	r.mu.Lock()
	defer r.mu.Unlock()
	ed := r.orders.edition
	if ed == nil {
		return keyring{}
	}
	signing := &ed.project.Agent.Signature
	ring := keyring{origin: signing.origin(), keys: ed.keys, valid: time.Duration(signing.Valid)}
	if r.orders.gone && r.state == api.StateStopped {
		ring.last = r.since
	}
	return ring
}
