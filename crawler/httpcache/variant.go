package httpcache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// MaxVariantKeyBytes is the greatest length of a result of VariantKey, in bytes.
const MaxVariantKeyBytes = 256

// tokenChars are the characters of the name of a header in lower case (RFC 9110, section 5.6.2).
const tokenChars = "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"

// noVariant is the VariantKey of an answer that stands for no other request.
const noVariant = "*"

// VariantKey returns what a cache stores of an answer and its request to know later for which requests
// the answer stands (RFC 9111, section 4.1): the names that the answer's Vary header lists, and a hash of
// the request's headers with these names. It is empty if the answer stands for every request. Names in
// ignored count as not listed.
//
// An answer whose Vary contains "*", or names too many headers for MaxVariantKeyBytes, stands for no
// other request.
func VariantKey(answer, request http.Header, ignored ...string) string {
	var names []string
	for name := range strings.SplitSeq(strings.Join(answer["Vary"], ","), ",") {
		name = strings.ToLower(strings.Trim(name, optionalSpace))
		switch {
		case name == "*":
			return noVariant
		case name == "" || slices.ContainsFunc(ignored, func(i string) bool { return strings.EqualFold(i, name) }):
		case strings.Trim(name, tokenChars) != "":
			return noVariant // not a name, so nobody knows what it stands for
		default:
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	list := strings.Join(slices.Compact(names), ",")
	key := list + ":" + hashHeaders(list, request)
	if len(key) > MaxVariantKeyBytes {
		return noVariant
	}
	return key
}

// MatchesVariant reports whether an answer stands for a request with this header. key is the answer's
// VariantKey.
func MatchesVariant(key string, request http.Header) bool {
	if key == "" {
		return true
	}
	list, hash, ok := strings.Cut(key, ":")
	return ok && hash == hashHeaders(list, request)
}

// hashHeaders returns a hash of the headers of a request whose names are in list, separated by
// commas. Lines of one header count as a list on one line, and the space around a value does not count.
// The hash is cryptographic, because a value may be a cookie or a password, and exports contain the hash.
func hashHeaders(list string, request http.Header) string {
	h := sha256.New()
	for name := range strings.SplitSeq(list, ",") {
		values := slices.Clone(request.Values(name))
		for i := range values {
			values[i] = strings.Trim(values[i], optionalSpace)
		}
		// A line break, which no value contains, separates the headers; a missing one differs from an
		// empty one.
		_, _ = fmt.Fprintf(h, "%d %s\n", min(len(values), 1), strings.Join(values, ", "))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
