package gate

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// A lookupExample is one line of testdata/fetch-examples.jsonl: a fetch of a robots.txt with its
// expected outcome.
type lookupExample struct {
	Req             string
	Dialect         string
	RobotsURL       string `json:"robots_url"`
	Responses       []scriptedResponse
	Cached          *scriptedResponse
	UnreachableDays *int     `json:"unreachable_days"`
	KnownBlocked    []string `json:"known_blocked"`
	SessionStart    bool     `json:"session_start"`
	MaxTTLHours     float64  `json:"max_ttl_hours"`
	Want            string
	Requests        *int
	Checks          []struct {
		Agent, URL string
		Allowed    bool
	}
	Note string
}

// A scriptedResponse describes the answer of a server.
type scriptedResponse struct {
	Status   int
	Error    string
	Location string
	Headers  map[string]string
	Body     string
	Generate *struct {
		Prefix, Suffix string
		PadTo          int `json:"pad_to"`
	}
	AgeHours float64 `json:"age_hours"` // the age of a cached copy
}

// TestLookupExamples runs the examples of fetching robots.txt.
func TestLookupExamples(t *testing.T) {
	for i, text := range robotstest.Lines(t, "../testdata/fetch-examples.jsonl") {
		var x lookupExample
		robotstest.Decode(t, text, &x)
		for _, name := range robotstest.DialectNames(x.Dialect) {
			d, err := robots.ParseDialect(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprintf("%s/%d/%s", x.Req, i+1, d), func(t *testing.T) {
				if err := x.run(t, d); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// run sets up the example, fetches the robots.txt, and compares the results.
func (x *lookupExample) run(t *testing.T, d robots.Dialect) error {
	s := newGateTest(t, Config{Dialect: d, MaxTTL: time.Duration(x.MaxTTLHours * float64(time.Hour))})
	page := robotstest.URL(t, "https://example.com/")
	if x.RobotsURL != "" {
		page = robotstest.URL(t, x.RobotsURL)
	}
	x.setUp(s, page)
	if x.SessionStart && d == robots.Yandex { // sessions do not matter in other dialects
		s.newSession()
	}

	outcome, requests := OutcomeUnknown, 0
	c, err := s.check(page)
	for err == nil && c.IsForRobots() {
		if requests == len(x.Responses) {
			return fmt.Errorf("fetches %v after %d requests", c.URL(), requests)
		}
		result := s.recordFetch(c, x.Responses[requests].responseTo(c.URL()))
		outcome = result.Outcome
		requests++
		if result.RedirectURL.IsZero() {
			break
		}
		c, err = s.gate.CheckRobotsRedirect(t.Context(), s.now, result.RedirectURL, page.Origin())
		var end *RedirectDisallowedError
		if errors.As(err, &end) {
			outcome = end.FetchResult.Outcome
		}
	}
	got := outcome.String()
	if requests == 0 && c.FetchSummary().Outcome == OutcomeRules {
		got = OutcomeCachedRules.String() // the examples' word for rules from the cache
	} else if requests == 0 {
		got = c.FetchSummary().Outcome.String()
	}
	if got != x.Want {
		return fmt.Errorf("outcome = %s, want %s", got, x.Want)
	}
	if x.Requests != nil && requests != *x.Requests {
		return fmt.Errorf("%d requests, want %d", requests, *x.Requests)
	}
	return x.checkVerdicts(s)
}

// checkVerdicts compares the expected verdicts. Each agent has a separate Gate, which shares the notes
// (CACHE-03).
func (x *lookupExample) checkVerdicts(s *gateTest) error {
	for _, want := range x.Checks {
		cfg := s.gate.cfg
		cfg.Agent = robots.AgentFromName(want.Agent)
		c, err := New(cfg, s.notes).Check(s.t.Context(), s.now, robotstest.URL(s.t, want.URL))
		if c.IsForRobots() {
			return fmt.Errorf("agent %s: robots.txt is fetched again", want.Agent)
		}
		if allowed := err == nil; allowed != want.Allowed {
			return fmt.Errorf("agent %s, %s: allowed = %v, want %v (%v)", want.Agent, want.URL,
				allowed, want.Allowed, err)
		}
	}
	return nil
}

// setUp creates the state that the example requires.
func (x *lookupExample) setUp(s *gateTest, page decorum.URL) {
	start := s.now
	if x.Cached != nil {
		s.now = start.Add(-time.Duration(x.Cached.AgeHours * float64(time.Hour)))
		if x.Cached.Status == 0 {
			x.Cached.Status = http.StatusOK
		}
		s.fetchRobots(page, x.Cached.responseTo)
		s.restart() // so that only the age of the copy counts, not whether it has cleared a page
	}
	if x.UnreachableDays != nil {
		// A Gate with a short MaxTTL finds the server failing while the copy would still be valid.
		shortTTL := *s
		shortTTL.gate = New(Config{MaxTTL: time.Minute}, s.notes)
		for days := *x.UnreachableDays; days > 0; days-- {
			shortTTL.now = start.Add(-time.Duration(days) * day)
			shortTTL.fetchRobots(page, scriptedResponse{Status: http.StatusInternalServerError}.responseTo)
		}
	}
	s.now = start
	for _, blocked := range x.KnownBlocked {
		u := robotstest.URL(s.t, blocked)
		s.fetchRobots(u, scriptedResponse{Status: http.StatusOK, Body: "User-agent: *\nDisallow: " +
			u.PathAndQuery() + "\n"}.responseTo)
	}
}

// responseTo returns the response to a request of u, nil for a failed request.
func (r scriptedResponse) responseTo(u decorum.URL) *decorum.Response {
	if r.Error != "" {
		return nil
	}
	res := &decorum.Response{URL: u, Status: r.Status, Header: http.Header{}, Body: []byte(r.Body)}
	for name, value := range r.Headers {
		res.Header.Set(name, value)
	}
	if r.Location != "" {
		res.Header.Set("Location", r.Location)
	}
	if g := r.Generate; g != nil {
		padding := bytes.Repeat([]byte("#"), g.PadTo-len(g.Prefix)-1)
		res.Body = slices.Concat([]byte(g.Prefix), padding, []byte("\n"+g.Suffix))
	}
	return res
}

// A gateTest is a Gate with its notes and the current time.
type gateTest struct {
	t     testing.TB
	gate  *Gate
	notes *memoryNotes
	now   time.Time
}

// testStart is the time at which each gateTest begins.
var testStart = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// newGateTest returns a gateTest with empty notes. In the Yandex dialect its session began a month ago.
func newGateTest(t testing.TB, cfg Config) *gateTest {
	t.Helper()
	if cfg.Dialect == robots.Yandex && cfg.SessionStart.IsZero() {
		cfg.SessionStart = testStart.Add(-30 * day)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if cfg.Agent.Token() == "" {
		cfg.Agent = robots.AgentFromName("anybot")
	}
	notes := newMemoryNotes()
	return &gateTest{t, New(cfg, notes), notes, testStart}
}

// restart simulates a restart of the processafter which only the notes remain.
func (s *gateTest) restart() { s.gate = New(s.gate.cfg, s.notes) }

// newSession is a restart that begins a new session.
func (s *gateTest) newSession() {
	s.gate.cfg.SessionStart = s.now
	s.restart()
}

func (s *gateTest) check(u decorum.URL) (Clearance, error) {
	return s.gate.Check(s.t.Context(), s.now, u)
}

// recordFetch passes a response to Gate.RecordFetch; nil means a failed request.
func (s *gateTest) recordFetch(c Clearance, res *decorum.Response) RecordFetchResult {
	s.t.Helper()
	var fetchErr error
	if res == nil {
		fetchErr = errors.New("connection reset by peer")
	}
	result, err := s.gate.RecordFetch(s.t.Context(), s.now, c, res, fetchErr)
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

// fetchRobots expects that robots.txt must be fetched before page, and records its answer.
func (s *gateTest) fetchRobots(page decorum.URL, answer func(decorum.URL) *decorum.Response) RecordFetchResult {
	s.t.Helper()
	return s.recordFetch(s.wantRobotsFetch(page), answer(page.Origin().RobotsURL()))
}

// wantDelay expects the delay that the rules of the origin demand; 0: no delay.
func (s *gateTest) wantDelay(o decorum.Origin, want time.Duration) {
	s.t.Helper()
	if delay, _, err := s.gate.DelayAndNextAllowedTime(s.t.Context(), o, s.now); err != nil || delay != want {
		s.t.Errorf("at %v: DelayAndNextAllowedTime(%v) = %v, %v; want %v", s.now, o, delay, err, want)
	}
}

// wantRobotsFetch expects that robots.txt must be fetched before page.
func (s *gateTest) wantRobotsFetch(page decorum.URL) Clearance {
	s.t.Helper()
	c, err := s.check(page)
	if err != nil || !c.IsForRobots() || c.redirectCount != 0 {
		s.t.Fatalf("at %v: Check(%v) = %v, %v; want the robots.txt", s.now, page, c.URL(), err)
	}
	if want := page.Origin().RobotsURL(); c.URL() != want || c.RobotsOrigin() != page.Origin() {
		s.t.Fatalf("Check(%v) clears %v for %v, want %v", page, c.URL(), c.RobotsOrigin(), want)
	}
	return c
}

// respondWith describes a response by its status, then names and values of headers in pairs, then the
// body.
func respondWith(status int, rest ...string) func(decorum.URL) *decorum.Response {
	r := scriptedResponse{Status: status, Headers: map[string]string{}}
	for len(rest) > 1 {
		r.Headers[rest[0]] = rest[1]
		rest = rest[2:]
	}
	r.Body = strings.Join(rest, "")
	return r.responseTo
}

// failDownload describes a failed request.
func failDownload(decorum.URL) *decorum.Response { return nil }
