package storage

import (
	"github.com/decorum-crawler/decorum"
)

// Fingerprint returns what stands for u among the URLs of its origin where only
// so much is kept of it: 64 bits of FNV-1a over path and query. It is in files,
// and stays as it is.
func Fingerprint(u decorum.URL) uint64 { return fnv1a(fnvOffset, u.PathAndQuery()) }

// RequestFingerprint returns what stands for e in the seen set: the RequestFingerprint of its
// URL and, if it has a NonGETRequest, over a line feed, the method, a line feed and the
// body as well.
func (e *Entry) RequestFingerprint() uint64 {
	h := Fingerprint(e.URL)
	if e.Request != nil {
		// No path holds the line feeds that set method and body apart.
		h = fnv1a(fnv1a(h, "\n"+e.Request.Method+"\n"), e.Request.Body)
	}
	return h
}

const fnvOffset = 14695981039346656037

// fnv1a goes on with a hash.
func fnv1a[T string | []byte](h uint64, s T) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
