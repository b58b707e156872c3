// Package httpcache decides by the rules of RFC 9111 (HTTP Caching) whether an answer may be stored,
// how long it is fresh, and for which requests it stands. It stores nothing: Evaluate, VariantKey and
// MatchesVariant are functions of headers and times.
//
// # A crawler as a cache
//
// A crawl is a private cache: it keeps what it remembers of an answer for its own next request, and
// serves it to nobody else. Thus max-age counts and s-maxage does not, and a private answer may be
// stored. A cache that serves what it stored to others passes Shared.
//
// A crawl does not serve stored answers, but asks for pages again. For a crawl, "fresh" means: do not
// ask again yet. "Stale" means that it may ask, and not that it must. So the directives mean:
//
//   - max-age, Expires, Age and Date give the time before which the page is not asked for again.
//   - no-cache gives no such time. The validators are kept, and the next request is conditional.
//   - must-revalidate forbids the use of a stale answer without a request. A crawl never does that.
//   - no-store forbids to store any part of the answer. The next request has no validators, and comes as
//     if the answer had no freshness. A crawl keeps a hash of the body: the hash only says whether the
//     page has changed, and no answer can be made from it. Output and web archives are the result of a
//     crawl, not a cache.
//   - Vary names the request headers that the answer depends on. If the next request differs in one of
//     them, the stored answer does not stand for it, and its validators are not sent. Vary: * stands
//     for headers that nobody knows, so the answer is fresh for no later request, and none is conditional.
//
// # The parser
//
// Cache-Control is not a structured field (RFC 9651), so a parser of those cannot read it. The parser
// for Go that is in wide use, github.com/pquerna/cachecontrol, has had no change since April 2023. It
// refuses a whole header for one malformed directive and so loses a no-store beside it, takes the last
// of several max-age, and starts a new directive after a space. ParseCacheControl reads each directive
// for itself, and decides in doubt for what makes an answer stale sooner.
package httpcache
