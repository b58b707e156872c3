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

// requestSigningKeys holds the keys that sign, or signed, the requests of one project.
type requestSigningKeys struct {
	keyDirectoryOrigin string // the https origin that publishes the keys
	keys               []*botauth.Key
	signatureTTL       time.Duration // how long a signature is valid
	signingEndedAt     time.Time     // when the last signature was made; zero: the project may still sign
}

// PublishedSigningKeys returns the key directory for requests to host, or nil if host has no keys.
// Projects with the same origin share a directory. If all projects have the same origin, the directory
// is returned for every host, because a proxy in front may use another name.
func (s *Supervisor) PublishedSigningKeys(host string) *botauth.KeyDirectory {
	return s.retiredKeyrings.directoryForHost(host, s.runners.requestSigningKeys(), time.Now())
}

// retiredKeyrings holds the keys of deleted projects, each until its last signature expires.
type retiredKeyrings struct {
	mu    sync.Mutex // guards rings
	rings []requestSigningKeys
}

// directoryForHost returns the key directory for a host, with the current and the retired keys that can
// verify a signature that is valid at now. It returns nil if the host has no keys.
func (rk *retiredKeyrings) directoryForHost(host string, current []requestSigningKeys,
	now time.Time) *botauth.KeyDirectory {
	keys := map[string][]*botauth.Key{} // by origin
	for _, ring := range rk.withValid(current, now) {
		for _, k := range ring.keys {
			if !slices.ContainsFunc(keys[ring.keyDirectoryOrigin], func(other *botauth.Key) bool {
				return other.ID() == k.ID()
			}) {
				keys[ring.keyDirectoryOrigin] = append(keys[ring.keyDirectoryOrigin], k)
			}
		}
	}
	// A single origin serves every host name. With several, the host name selects one.
	for _, origin := range slices.Sorted(maps.Keys(keys)) {
		if len(keys) == 1 || strings.EqualFold(origin, "https://"+host) {
			directory, _ := botauth.NewKeyDirectory(origin, keys[origin]...) // validated with the project file
			return directory
		}
	}
	return nil
}

// withValid returns the current and the retired keys that can verify a signature that is valid at now.
func (rk *retiredKeyrings) withValid(current []requestSigningKeys, now time.Time) []requestSigningKeys {
	rk.mu.Lock()
	defer rk.mu.Unlock()
	return slices.DeleteFunc(append(current, rk.rings...), func(ring requestSigningKeys) bool {
		return ring.allSignaturesExpired(now)
	})
}

// add stores the keys of a project that has been deleted and has ended, and drops expired ones.
func (rk *retiredKeyrings) add(ring requestSigningKeys, now time.Time) {
	if ring.signingEndedAt.IsZero() {
		ring.signingEndedAt = now
	}
	rk.mu.Lock()
	defer rk.mu.Unlock()
	rk.rings = slices.DeleteFunc(append(rk.rings, ring), func(ring requestSigningKeys) bool {
		return ring.allSignaturesExpired(now)
	})
}

// allSignaturesExpired reports whether every signature by these keys has expired by now.
func (k requestSigningKeys) allSignaturesExpired(now time.Time) bool {
	return len(k.keys) == 0 || !k.signingEndedAt.IsZero() && now.After(k.signingEndedAt.Add(k.signatureTTL))
}

// requestSigningKeys returns the signing keys of the project. A project whose file is gone made its last
// signature no later than it stopped.
func (rs *projectLifecycle) requestSigningKeys() requestSigningKeys {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	loaded := rs.command.lastValidProject
	if loaded == nil {
		return requestSigningKeys{}
	}
	signing := &loaded.project.Agent.Signature
	ring := requestSigningKeys{keyDirectoryOrigin: signing.NormalizedKeyDirectoryOrigin(), keys: loaded.signingKeys,
		signatureTTL: time.Duration(signing.SignatureTTL)}
	if rs.command.isProjectFileGone && rs.state == api.StateStopped {
		ring.signingEndedAt = rs.since
	}
	return ring
}
