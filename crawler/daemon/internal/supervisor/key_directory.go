package supervisor

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A signingKeyring is what requests of a project are signed with, or were.
type signingKeyring struct {
	keyDirectoryOrigin string // where the directory of the keys is
	keys               []*botauth.Key
	signatureTTL       time.Duration // a signature is for so long
	signingEndedAt     time.Time     // none is made after this; zero: others may be
}

// PublishedSigningKeys returns the directory of the origin that a host is: projects of one
// origin share it. Where all projects have the same, it is that, by whatever name a
// proxy in front asks.
func (s *Supervisor) PublishedSigningKeys(host string) *botauth.KeyDirectory {
	return s.keyDirectoryForHost(host, time.Now())
}

func (s *Supervisor) keyDirectoryForHost(host string, now time.Time) *botauth.KeyDirectory {
	keys := map[string][]*botauth.Key{} // by origin
	for _, ring := range s.signingKeyrings(now) {
		for _, k := range ring.keys {
			if !slices.ContainsFunc(keys[ring.keyDirectoryOrigin], func(other *botauth.Key) bool { return other.ID() == k.ID() }) {
				keys[ring.keyDirectoryOrigin] = append(keys[ring.keyDirectoryOrigin], k)
			}
		}
	}
	for _, origin := range slices.Sorted(maps.Keys(keys)) {
		if len(keys) == 1 || strings.EqualFold(origin, "https://"+host) {
			directory, _ := botauth.NewKeyDirectory(origin, keys[origin]...) // it has been checked
			return directory
		}
	}
	return nil
}

// signingKeyrings returns those by which a signature may be checked.
func (s *Supervisor) signingKeyrings(now time.Time) []signingKeyring {
	var rings []signingKeyring
	for _, r := range s.allRunners() {
		rings = append(rings, r.signingKeyring())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(append(rings, s.retiredKeyrings...), func(ring signingKeyring) bool { return ring.allSignaturesExpired(now) })
}

// retireDeletedProjectKeyring keeps the keys of a project that has been deleted and has ended, until its
// last signature runs out.
func (s *Supervisor) retireDeletedProjectKeyring(r *projectRunner, now time.Time) {
	ring := r.signingKeyring()
	if ring.signingEndedAt.IsZero() {
		ring.signingEndedAt = now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retiredKeyrings = slices.DeleteFunc(append(s.retiredKeyrings, ring), func(ring signingKeyring) bool { return ring.allSignaturesExpired(now) })
}

// allSignaturesExpired reports whether no signature by these keys is valid any more.
func (k signingKeyring) allSignaturesExpired(now time.Time) bool {
	return len(k.keys) == 0 || !k.signingEndedAt.IsZero() && now.After(k.signingEndedAt.Add(k.signatureTTL))
}

// signingKeyring returns what requests of the project are signed with. One whose file is gone
// signs no more once it has stopped.
func (r *projectRunner) signingKeyring() signingKeyring {
	r.mu.Lock()
	defer r.mu.Unlock()
	loaded := r.command.lastValidProject
	if loaded == nil {
		return signingKeyring{}
	}
	signing := &loaded.project.Agent.Signature
	ring := signingKeyring{keyDirectoryOrigin: signing.NormalizedKeyDirectoryOrigin(), keys: loaded.signingKeys, signatureTTL: time.Duration(signing.SignatureTTL)}
	if r.command.isProjectFileGone && r.state == api.StateStopped {
		ring.signingEndedAt = r.stateSince
	}
	return ring
}
