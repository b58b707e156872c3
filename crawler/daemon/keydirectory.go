package daemon

import (
	"maps"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/botauth"
)

// KeyDirectory returns the directory of the origin that a host is: projects of one
// origin share it. Where all projects have the same, it is that, by whatever name a
// proxy in front asks.
func (s *supervisor) KeyDirectory(host string) *botauth.Directory {
	keys := map[string][]*botauth.Key{} // by origin
	for _, r := range s.all() {
		ed := r.edition()
		if ed == nil || len(ed.keys) == 0 {
			continue
		}
		origin := ed.project.Agent.Signature.origin()
		for _, k := range ed.keys {
			if !slices.ContainsFunc(keys[origin], func(other *botauth.Key) bool { return other.ID() == k.ID() }) {
				keys[origin] = append(keys[origin], k)
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
