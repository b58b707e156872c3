package httpcache

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Kind says whom a cache serves (RFC 9111, section 1).
type Kind uint8

// The kinds of caches.
const (
	Private Kind = iota // one user, as a crawler
	Shared              // several users
)

// A Response is the final answer to a GET request, as far as the rules need it.
type Response struct {
	Status        int
	Header        http.Header
	RequestHeader http.Header // of the request; a Private cache needs none
	// RequestedAt and ReceivedAt are when the request was sent and when the answer had come, by the
	// cache's own clock. A ReceivedAt that is too late makes the answer stale too early. A zero
	// RequestedAt means that the answer came at once.
	RequestedAt, ReceivedAt time.Time
}

// The values of Freshness.By that are not directives.
const (
	ByExpires   = "Expires"   // the Expires header
	ByHeuristic = "heuristic" // a tenth of the time since Last-Modified
)

// DescribeFreshBy returns what the Freshness.By of an answer names, in words.
func DescribeFreshBy(by string) string {
	switch by {
	case ByExpires:
		return "Expires"
	case ByHeuristic:
		return "a tenth of the time since Last-Modified"
	}
	return "Cache-Control: " + by
}

// A Freshness is what the headers of an answer allow a cache.
type Freshness struct {
	// NoStore says that the cache may store no part of the answer (RFC 9111, section 3). The answer is
	// not fresh then.
	NoStore bool
	// Lifetime is how long the answer is fresh after the origin generated it, at most 2^31 s (section
	// 4.2.1), and By is what says so: a directive such as "max-age=60", ByExpires or ByHeuristic. By is
	// empty if nothing does, or what does is invalid.
	Lifetime time.Duration
	By       string
	// InitialAge is the age that the answer had at Response.ReceivedAt, at most 2^31 s (section 4.2.3).
	InitialAge time.Duration
	// MustRevalidate says that a stale answer may not be used without asking the origin: by
	// must-revalidate, or in a Shared cache by proxy-revalidate or s-maxage. NoCache says the same of an
	// answer of any age.
	MustRevalidate, NoCache bool
}

// FreshFor returns how long after Response.ReceivedAt the answer may be used without asking the
// origin. It is never negative.
func (f Freshness) FreshFor() time.Duration {
	if f.NoStore || f.NoCache {
		return 0
	}
	return max(f.Lifetime-f.InitialAge, 0)
}

// IsHeuristic reports whether the cache itself has estimated the lifetime.
func (f Freshness) IsHeuristic() bool { return f.By == ByHeuristic }

// Evaluate returns what the headers of r allow a cache of this kind.
func (k Kind) Evaluate(r Response) Freshness {
	d := ParseCacheControl(r.Header["Cache-Control"])
	date := httpDate(r.Header, "Date")
	if date.IsZero() {
		date = r.ReceivedAt // RFC 9110, section 6.6.1
	}
	f := Freshness{NoCache: d.NoCache, InitialAge: initialAge(r, date),
		MustRevalidate: d.MustRevalidate || k == Shared && (d.ProxyRevalidate || d.SMaxAge.IsStated)}
	f.Lifetime, f.By = k.lifetime(r, d, date)
	f.NoStore = !k.mayStore(r, d, f.By)
	return f
}

// lifetime returns how long an answer generated at date is fresh, by the first that is stated of
// s-maxage (in a Shared cache), max-age, Expires and, as a heuristic, Last-Modified. If what is stated is
// invalid, the answer is not fresh, as RFC 9111, section 4.2.1, recommends.
func (k Kind) lifetime(r Response, d Directives, date time.Time) (lifetime time.Duration, by string) {
	switch {
	case k == Shared && d.SMaxAge.IsStated:
		return d.SMaxAge.lifetime("s-maxage")
	case d.MaxAge.IsStated:
		return d.MaxAge.lifetime("max-age")
	case len(r.Header["Expires"]) > 0:
		expires := earliestDate(r.Header["Expires"])
		if expires.IsZero() {
			return 0, ""
		}
		return limitDelta(expires.Sub(date)), ByExpires
	}
	modified := httpDate(r.Header, "Last-Modified")
	if modified.IsZero() || !modified.Before(date) || !d.Public && !isHeuristicallyCacheable(r.Status) {
		return 0, ""
	}
	return limitDelta(date.Sub(modified) / heuristicDivisor), ByHeuristic
}

// lifetime returns the result of Kind.lifetime for the directive with this name.
func (d Delta) lifetime(name string) (time.Duration, string) {
	if d.IsInvalid {
		return 0, ""
	}
	return d.Value, fmt.Sprintf("%s=%d", name, d.Value/time.Second)
}

// heuristicDivisor makes a heuristic lifetime 10 % of the time since the last modification, which RFC
// 9111, section 4.2.2, calls a typical setting and gives as a limit.
const heuristicDivisor = 10

// isHeuristicallyCacheable reports whether a cache may estimate the lifetime of an answer with this
// status (RFC 9110, section 15.1). 206 is left out, because it is a part of an answer.
func isHeuristicallyCacheable(status int) bool {
	switch status {
	case http.StatusOK, http.StatusNonAuthoritativeInfo, http.StatusNoContent, http.StatusMultipleChoices,
		http.StatusMovedPermanently, http.StatusPermanentRedirect, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusGone, http.StatusRequestURITooLong, http.StatusNotImplemented:
		return true
	}
	return false
}

// mayStore reports whether the cache may store the answer (RFC 9111, section 3). by is Freshness.By.
func (k Kind) mayStore(r Response, d Directives, by string) bool {
	understood := isHeuristicallyCacheable(r.Status)
	switch {
	case d.MustUnderstand && !understood:
		return false
	case d.NoStore && !d.MustUnderstand, r.Status == http.StatusPartialContent:
		return false
	case k == Shared && d.Private:
		return false
	case k == Shared && len(r.RequestHeader["Authorization"]) > 0 &&
		!d.Public && !d.MustRevalidate && !d.SMaxAge.IsStated:
		return false // section 3.5
	}
	return understood || d.Public || d.Private || by != "" || d.MaxAge.IsStated || len(r.Header["Expires"]) > 0
}

// initialAge returns the corrected_initial_age of RFC 9111, section 4.2.3: the larger of two
// estimates, so that a clock that is wrong, or a cache on the way that sends no Age, makes an answer
// stale too early rather than too late. The time of the transfer counts as a part of the age.
func initialAge(r Response, date time.Time) time.Duration {
	apparent := r.ReceivedAt.Sub(date)
	first, _, _ := strings.Cut(r.Header.Get("Age"), ",") // the first of several counts
	age, _ := parseSeconds(strings.Trim(first, optionalSpace))
	if !r.RequestedAt.IsZero() {
		age += limitDelta(r.ReceivedAt.Sub(r.RequestedAt))
	}
	return limitDelta(max(apparent, age))
}

// limitDelta returns d limited to the range from 0 to maxDelta.
func limitDelta(d time.Duration) time.Duration { return min(max(d, 0), maxDelta) }

// httpDate returns the time in the first header with this name, zero if there is none or it is
// invalid.
func httpDate(h http.Header, name string) time.Time {
	return earliestDate(h[name][:min(len(h[name]), 1)])
}

// earliestDate returns the earliest of the times, zero if there is none or one is invalid.
func earliestDate(values []string) time.Time {
	times := make([]time.Time, 0, 1)
	for _, v := range values {
		t, err := http.ParseTime(strings.Trim(v, optionalSpace))
		if err != nil {
			return time.Time{}
		}
		times = append(times, t)
	}
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}
