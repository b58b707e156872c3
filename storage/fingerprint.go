package storage

import (
	"github.com/decorum-crawler/decorum"
)

// Fingerprint returns the 64-bit FNV-1a hash of the path and query of u, which identifies u among
// the URLs of its origin. Stores keep it on disk, so it must never change.
func Fingerprint(u decorum.URL) uint64 { return fnv1a(fnvOffset, u.PathAndQuery()) }

// RequestFingerprint returns what the seen set holds for e: the Fingerprint of its URL, continued
// over a line feed, the method, a line feed and the body if e has a NonGETRequest. Stores keep it
// on disk, so it must never change.
func (e *Entry) RequestFingerprint() uint64 {
	h := Fingerprint(e.URL)
	if e.Request != nil {
		// The line feeds separate the parts: a path cannot contain one.
		h = fnv1a(fnv1a(h, "\n"+e.Request.Method+"\n"), e.Request.Body)
	}
	return h
}

const fnvOffset = 14695981039346656037

// fnv1a continues the FNV-1a hash h over s.
func fnv1a[T string | []byte](h uint64, s T) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
