package seedoutcome

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// maxFailedSeeds limits the seeds that Failures describes.
const maxFailedSeeds = 10

// A Recorder collects why seeds of a run led to no page. The zero value is ready to use. Its methods may be
// called at the same time.
type Recorder struct {
	mu      sync.Mutex   // guards failed and hasMore
	failed  []failedSeed // at most maxFailedSeeds
	hasMore bool         // more seeds have failed
}

// A failedSeed is a seed that has led to no page so far.
type failedSeed struct {
	url    string
	target string // where its redirects have led so far; url without redirects
	why    string // about target, a predicate; empty: not known yet
}

// String returns the URL of f and why it led to no page.
func (f failedSeed) String() string {
	text, why := plaintext.TruncateURL(f.url), plaintext.ReplaceControlChars(f.why)
	switch {
	case f.target == f.url && why == "":
		return text + " redirects, directly or by others, to itself"
	case f.target == f.url:
		return text + " " + why
	}
	text += " redirects to " + plaintext.TruncateURL(f.target)
	if why != "" {
		text += ", which " + why
	}
	return text
}

// Visited is crawler.Hooks.Visited. It records a visit to a seed, or to where its redirects lead, that found
// no page, or a visit to the robots.txt that must come first.
func (s *Recorder) Visited(v *crawler.Visit) {
	e, u := v.Lease.Entry, v.URL().String()
	// A page that a callback drops has not failed.
	if e.SeedOrigin.IsZero() || v.OK() || errors.Is(v.Err, decorum.Dropped) {
		return
	}
	to, redirects := decorum.URL{}, false
	if v.Response != nil {
		to, redirects = v.Response.Location()
	}
	switch {
	case v.Kind == crawler.RobotsVisit && v.Response == nil && v.Err != nil:
		s.record(e, e.URL.String(), "cannot be visited: "+ErrorCause(v.Err))
	case v.Kind == crawler.RobotsVisit && v.Status() >= http.StatusInternalServerError:
		s.record(e, e.URL.String(), fmt.Sprintf("cannot be visited: its robots.txt answers with status %d", v.Status()))
	case !v.Kind.IsPage():
	case redirects:
		s.recordRedirect(e, u, to.String())
	case v.Response != nil:
		s.record(e, u, fmt.Sprintf("answers with status %d", v.Status()))
	case v.Err != nil:
		s.record(e, u, "cannot be visited: "+ErrorCause(v.Err))
	}
}

// VisitRefused is crawler.Hooks.VisitRefused. It records that a queued seed, or where its redirects lead, may
// not be visited.
func (s *Recorder) VisitRefused(l storage.Lease, d decorum.Decision) {
	switch {
	case l.SeedOrigin.IsZero(), d.Action != decorum.Refuse && d.Action != decorum.Suspend:
	case d.Reason == decorum.ReasonDropped, d.Reason == decorum.ReasonHostPages, d.Reason == decorum.ReasonHostBytes:
	case d.Reason == decorum.ReasonRobots:
		s.record(l.Entry, l.URL.String(), "is closed by robots.txt: "+d.Rule)
	default:
		s.record(l.Entry, l.URL.String(), "cannot be visited: "+ErrorCause(d.Err()))
	}
}

// DiscoveryRefused is frontier.Config.OnRefused. It records that a seed, or what it redirects to, is out of scope.
func (s *Recorder) DiscoveryRefused(e storage.Entry, err error) {
	if e.SeedOrigin.IsZero() {
		return
	}
	if e.Source == storage.SourceRedirect {
		from := e
		from.Redirects--
		s.recordRedirect(from, e.Referrer, e.URL.String())
	}
	s.record(e, e.URL.String(), "is out of scope: "+ErrorCause(err))
}

// record sets the reason why the URL of e gave no page.
func (s *Recorder) record(e storage.Entry, url, why string) {
	s.update(e, failedSeed{url, url, why}, func(f *failedSeed) bool {
		if f.target == url {
			f.why = why
		}
		return f.target == url
	})
}

// recordRedirect sets where the URL from of e redirects to.
func (s *Recorder) recordRedirect(e storage.Entry, from, to string) {
	s.update(e, failedSeed{from, to, ""}, func(f *failedSeed) bool {
		if f.target == from {
			f.target, f.why = to, ""
		}
		return f.target == to && (f.url == from || e.Redirects > 0)
	})
}

// update calls change with each failed seed. If it returns false for all, and e is a seed, update adds
// added.
func (s *Recorder) update(e storage.Entry, added failedSeed, change func(*failedSeed) (found bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for i := range s.failed {
		found = change(&s.failed[i]) || found
	}
	switch {
	case found, e.Redirects > 0:
	case len(s.failed) < maxFailedSeeds:
		s.failed = append(s.failed, added)
	default:
		s.hasMore = true
	}
}

// Failures describes the failed seeds of the run, at most 10 and then "and more seeds". It returns nil if
// none has failed.
func (s *Recorder) Failures() (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.failed {
		texts = append(texts, f.String())
	}
	if s.hasMore {
		texts = append(texts, "and more seeds")
	}
	return texts
}

// ErrorCause returns the text of the cause inside a *decorum.Error, without its operation and URL, which the
// caller names itself. If another *decorum.Error is the cause of that, such as a refused address, ErrorCause
// returns the text of the innermost one. For any other error it returns the whole text.
func ErrorCause(err error) string {
	outer, ok := errors.AsType[*decorum.Error](err)
	if !ok || outer.Err == nil {
		return err.Error()
	}
	cause := outer.Err
	for inner, ok := errors.AsType[*decorum.Error](cause); ok; inner, ok = errors.AsType[*decorum.Error](inner.Err) {
		cause = inner
	}
	return cause.Error()
}
