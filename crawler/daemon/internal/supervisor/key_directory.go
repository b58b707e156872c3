package supervisor

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A requestSigningKeys is what requests of a project are signed with, or were.
type requestSigningKeys struct {
	keyDirectoryOrigin string // where the directory of the keys is
	keys               []*botauth.Key
	signatureTTL       time.Duration // a signature is for so long
	signingEndedAt     time.Time     // none is made after this; zero: others may be
}

// PublishedSigningKeys returns the directory of the origin that a host is: projects of one
// origin share it. Where all projects have the same, it is that, by whatever name a
// proxy in front asks.
func (s *Supervisor) PublishedSigningKeys(host string) *botauth.KeyDirectory {
	return s.retiredKeyrings.directoryForHost(host, s.runners.requestSigningKeys(), time.Now())
}

// retiredKeyrings are the keyrings of deleted projects, each until its last signature
// expires.
type retiredKeyrings struct {
	mu    sync.Mutex // guards rings
	rings []requestSigningKeys
}

// directoryForHost returns the directory of the keys by which a signature may be checked at
// now: those of the current keyrings, and the retired ones. It returns nil if a host
// has no keys.
func (rk *retiredKeyrings) directoryForHost(host string, current []requestSigningKeys, now time.Time) *botauth.KeyDirectory {
	keys := map[string][]*botauth.Key{} // by origin
	for _, ring := range rk.withValid(current, now) {
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

// withValid returns those of the current and the retired keyrings by which a signature may be
// checked at now.
func (rk *retiredKeyrings) withValid(current []requestSigningKeys, now time.Time) []requestSigningKeys {
	rk.mu.Lock()
	defer rk.mu.Unlock()
	return slices.DeleteFunc(append(current, rk.rings...), func(ring requestSigningKeys) bool { return ring.allSignaturesExpired(now) })
}

// add keeps the keyring of a project that has been deleted and has ended, and drops the
// expired ones.
func (rk *retiredKeyrings) add(ring requestSigningKeys, now time.Time) {
	if ring.signingEndedAt.IsZero() {
		ring.signingEndedAt = now
	}
	rk.mu.Lock()
	defer rk.mu.Unlock()
	rk.rings = slices.DeleteFunc(append(rk.rings, ring), func(ring requestSigningKeys) bool { return ring.allSignaturesExpired(now) })
}

// allSignaturesExpired reports whether no signature by these keys is valid any more.
func (k requestSigningKeys) allSignaturesExpired(now time.Time) bool {
	return len(k.keys) == 0 || !k.signingEndedAt.IsZero() && now.After(k.signingEndedAt.Add(k.signatureTTL))
}

// requestSigningKeys returns what requests of the project are signed with. One whose file is gone
// signs no more once it has stopped.
func (rs *projectLifecycle) requestSigningKeys() requestSigningKeys {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	loaded := rs.command.lastValidProject
	if loaded == nil {
		return requestSigningKeys{}
	}
	signing := &loaded.project.Agent.Signature
	ring := requestSigningKeys{keyDirectoryOrigin: signing.NormalizedKeyDirectoryOrigin(), keys: loaded.signingKeys, signatureTTL: time.Duration(signing.SignatureTTL)}
	if rs.command.isProjectFileGone && rs.state == api.StateStopped {
		ring.signingEndedAt = rs.since
	}
	return ring
}
