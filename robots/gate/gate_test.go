package gate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

const someRules = "User-agent: *\nDisallow: /a\nCrawl-delay: 7\n\nSitemap: https://cdn.example.net/map.xml\n"

// wantCheck expects a result of Check for a URL: pageCleared, robotsFirst or the kind of the error. It
// also calls Peek before Check: the two must agree, and Peek must not influence Check.
func (s *gateTest) wantCheck(u decorum.URL, want string) (Clearance, error) {
	s.t.Helper()
	peeked, peekErr := s.gate.Peek(s.t.Context(), s.now, u)
	c, err := s.check(u)
	if peeked != (err == nil && !c.IsForRobots() || errors.Is(err, decorum.Disallowed)) ||
		fmt.Sprint(peekErr) != fmt.Sprint(err) {
		s.t.Errorf("Peek(%v) = %v, %v; Check says %v, %v", u, peeked, peekErr, c.IsForRobots(), err)
	}
	got := "open"
	var e *decorum.Error
	switch {
	case errors.As(err, &e):
		got = e.Kind.Error()
	case err != nil:
		got = err.Error()
	case c.IsForRobots():
		got = "robots.txt"
	}
	if got != want {
		s.t.Errorf("at %v: Check(%v) = %s (%v), want %s", s.now.Format(time.DateTime), u, got, err, want)
	}
	if (err == nil) != c.WasIssued() {
		s.t.Errorf("Check(%v): Clearance.WasIssued() = %v with error %v", u, c.WasIssued(), err)
	}
	return c, err
}

const (
	pageCleared = "open"
	robotsFirst = "robots.txt"
	disallowed  = string(decorum.Disallowed)
	pending     = string(decorum.Pending)
	unreachable = string(decorum.Unreachable)
)

// TestStatus lists the effect of each status, and of a failed request, on an origin whose robots.txt is
// fetched for the first time.
func TestStatus(t *testing.T) {
	const last = 1000
	a, b := robotstest.URL(t, "https://example.com/a"), robotstest.URL(t, "https://example.com/b")
	next := 0
	for _, row := range []struct {
		req     string
		to      int // the row covers the statuses from the end of the row before up to this one
		outcome Outcome
		a, b    string // the results of Check for /a, which the body disallows, and /b
	}{
		{"FETCH-27", 199, OutcomeDisallowAll, unreachable, unreachable},
		{"FETCH-01", 299, OutcomeRules, disallowed, pageCleared},
		{"FETCH-26", 303, OutcomeAllowAll, pageCleared, pageCleared}, // without Location
		{"FETCH-27", 304, OutcomeDisallowAll, unreachable, unreachable},
		{"FETCH-26", 399, OutcomeAllowAll, pageCleared, pageCleared},
		{"FETCH-07", 428, OutcomeAllowAll, pageCleared, pageCleared},
		{"FETCH-10", 429, OutcomeDisallowAll, unreachable, unreachable},
		{"FETCH-07", 499, OutcomeAllowAll, pageCleared, pageCleared},
		{"FETCH-09", 599, OutcomeDisallowAll, unreachable, unreachable},
		{"FETCH-18", last, OutcomeDisallowAll, unreachable, unreachable}, // a failed request
	} {
		t.Run(fmt.Sprintf("%s/%d to %d", row.req, next, row.to), func(t *testing.T) {
			for ; next <= row.to; next++ {
				s := newGateTest(t, Config{})
				result := s.fetchRobots(b, respondWith(next, someRules))
				if result.Outcome != row.outcome || result.HasRulesInForce != (row.b == pageCleared) ||
					(result.PostponedErr == nil) != result.HasRulesInForce {
					t.Errorf("status %d: result %+v, want outcome %v", next, result, row.outcome)
				}
				s.wantCheck(a, row.a)
				s.wantCheck(b, row.b)
			}
		})
	}
}

func TestFailuresPostponeTheOrigin(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	for name, visit := range map[string]struct {
		res *decorum.Response
		err error
	}{
		"FETCH-18/no response":         {nil, errors.New("i/o timeout")},
		"FETCH-18/nothing at all":      {nil, nil},
		"FETCH-19/part of a response":  {respondWith(200, "User-agent: *\n")(page), errors.New("unexpected EOF")},
		"FETCH-19/part of a not found": {respondWith(404)(page), errors.New("unexpected EOF")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newGateTest(t, Config{})
			result, err := s.gate.RecordFetch(t.Context(), s.now, s.wantRobotsFetch(page), visit.res, visit.err)
			if err != nil || result.HasRulesInForce || result.Outcome != OutcomeDisallowAll {
				t.Errorf("RecordFetch = %+v, %v; want it postponed", result, err)
			}
			s.wantCheck(page, unreachable)
		})
	}
}

func TestNotFoundPages(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	for _, test := range []struct {
		name    string
		phrases []string
		status  int
		body    string
		want    string
	}{
		{"FETCH-17/any case", nil, 500, "<title>PAGE NOT FOUND</title>", pageCleared},
		{"FETCH-17/Cyrillic capitals", nil, 502, "<h1>СТРАНИЦА НЕ НАЙДЕНА</h1>", pageCleared},
		{"FETCH-17/other words", nil, 500, "not found: database", unreachable},
		{"FETCH-17/never 503", nil, 503, "page not found", unreachable},
		{"FETCH-17/never 429", nil, 429, "page not found", unreachable},
		{"FETCH-17/own phrase", []string{"Ei löytynyt"}, 500, "<p>EI LÖYTYNYT</p>", pageCleared},
		{"FETCH-17/own phrases replace", []string{"gone fishing"}, 500, "page not found", unreachable},
		{"FETCH-17/switched off", []string{}, 500, "page not found", unreachable},
		{"FETCH-17/empty phrase", []string{""}, 500, "page not found", unreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newGateTest(t, Config{NotFoundPhrases: test.phrases})
			s.fetchRobots(page, respondWith(test.status, test.body))
			s.wantCheck(page, test.want)
		})
	}
}

// TestRecordFetchResult tests the results of RecordFetch and the methods of a Clearance.
func TestRecordFetchResult(t *testing.T) {
	s := newGateTest(t, Config{})
	a, b := robotstest.URL(t, "https://example.com/a"), robotstest.URL(t, "https://example.com/b?q=1")
	result := s.fetchRobots(a, respondWith(200, someRules))
	if !result.HasRulesInForce || result.Origin != a.Origin() || !result.RedirectURL.IsZero() {
		t.Errorf("result = %+v", result)
	}
	sitemaps, err := s.gate.Sitemaps(t.Context(), a.Origin())
	if err != nil || len(sitemaps) != 1 || sitemaps[0].String() != "https://cdn.example.net/map.xml" {
		t.Errorf("sitemaps = %v, %v", sitemaps, err)
	}
	// sha256sum of someRules
	want := FetchSummary{"e3256bf828080009e0a4d73de73eb39b4f540b63b8fbaea7c3241f6e416db4e2", s.now, OutcomeRules, true}
	c, _ := s.wantCheck(b, pageCleared)
	if c.URL() != b || c.RobotsOrigin() != b.Origin() || c.IsForRobots() || c.redirectCount != 0 ||
		!c.Verdict().Allowed || c.FetchSummary() != want {
		t.Errorf("clearance for %v, verdict %+v, file %+v, want file %+v", c.URL(), c.Verdict(), c.FetchSummary(), want)
	}
	_, err = s.wantCheck(a, disallowed)
	var no *Refusal
	if !errors.As(err, &no) || no.Verdict.Rule != "disallow: /a" || no.Verdict.Line != 2 || no.FetchSummary != want {
		t.Errorf("refusal = %+v", no)
	}
	if want := "robots https://example.com/a: disallowed by robots.txt: disallow: /a (line 2, group *)"; err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
	s.wantDelay(a.Origin(), 7*time.Second)
}

func TestNothingIsKnown(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	s.wantDelay(page.Origin(), 0)
	if r, err := s.gate.Rules(t.Context(), page.Origin()); r != nil || err != nil {
		t.Errorf("Rules = %v, %v", r, err)
	}
	s.wantCheck(decorum.URL{}, string(decorum.Invalid))
	if (Clearance{}).WasIssued() || (Clearance{}).FetchSummary() != (FetchSummary{}) {
		t.Error("the zero Clearance is valid")
	}
}

// TestForeignClearance proves that RecordFetch rejects a Clearance of another Gate or for a page.
func TestForeignClearance(t *testing.T) {
	s, other := newGateTest(t, Config{}), newGateTest(t, Config{})
	page, known := robotstest.URL(t, "https://example.com/b"), robotstest.URL(t, "https://a.test/")
	theirs := other.wantRobotsFetch(page)
	s.wantRobotsFetch(page)
	s.fetchRobots(known, respondWith(404))
	cleared, _ := s.wantCheck(known, pageCleared)
	for name, c := range map[string]Clearance{"zero": {}, "of another gate": theirs, "of a page": cleared} {
		if _, err := s.gate.RecordFetch(t.Context(), s.now, c, nil, nil); !errors.Is(err, decorum.Invalid) {
			t.Errorf("RecordFetch with a Clearance %s: %v, want it refused", name, err)
		}
		s.gate.CancelFetch(c) // must have no effect
		s.wantCheck(page, pending)
		s.wantCheck(known, pageCleared)
	}
}

// TestRobotsURLIsAPage proves FETCH-29: a link to robots.txt waits for the rules like every page, and
// no rule can disallow it.
func TestRobotsURLIsAPage(t *testing.T) {
	s := newGateTest(t, Config{})
	u := robotstest.URL(t, "https://example.com/robots.txt")
	s.fetchRobots(u, respondWith(200, "User-agent: *\nDisallow: /\n"))
	c, _ := s.wantCheck(u, pageCleared)
	if c.URL() != u || c.IsForRobots() {
		t.Errorf("cleared as %v, ForRobots %v; want it as a page", c.URL(), c.IsForRobots())
	}
	s.wantCheck(robotstest.URL(t, "https://example.com/"), disallowed)
}

// TestClearanceForURL proves that ClearOtherURL decides by the rules that cleared the first URL, even if
// these are no longer in force for a second page.
func TestClearanceForURL(t *testing.T) {
	s := newGateTest(t, Config{})
	page, file := robotstest.URL(t, "https://example.com/b"),
		robotstest.URL(t, "https://example.com/.well-known/tdmrep.json")
	s.fetchRobots(page, respondWith(200, "Cache-Control", "no-cache", "User-agent: *\nDisallow: /a\n"))
	s.now = s.now.Add(time.Hour)
	c, _ := s.wantCheck(page, pageCleared)
	also, err := c.ClearOtherURL(file)
	if err != nil || also.URL() != file || also.IsForRobots() || also.FetchSummary() != c.FetchSummary() ||
		also.RobotsOrigin() != c.RobotsOrigin() {
		t.Errorf("cleared as %+v, %v", also, err)
	}
	if no, err := c.ClearOtherURL(robotstest.URL(t, "https://example.com/a")); !errors.Is(err, decorum.Disallowed) ||
		no.WasIssued() {
		t.Errorf("%+v, %v, want it disallowed", no, err)
	}
	lookup, _ := s.wantCheck(page, robotsFirst) // the rules have cleared a page
	for name, no := range map[string]struct {
		c Clearance
		u decorum.URL
	}{"another origin": {c, robotstest.URL(t, "http://example.com/b")}, "a robots.txt": {lookup, file},
		"nothing": {Clearance{}, file}} {
		if also, err := no.c.ClearOtherURL(no.u); !errors.Is(err, decorum.Invalid) || also.WasIssued() {
			t.Errorf("%s: %+v, %v, want it refused", name, also, err)
		}
	}
}

// TestOriginsAreApart proves LOC-03 and LOC-16.
func TestOriginsAreApart(t *testing.T) {
	s := newGateTest(t, Config{})
	s.fetchRobots(robotstest.URL(t, "https://example.com/"), respondWith(200, "User-agent: *\nDisallow: /\n"))
	for _, other := range []string{"http://example.com/", "https://example.com:8443/", "https://www.example.com/"} {
		s.wantCheck(robotstest.URL(t, other), robotsFirst)
	}
}

// TestTruncated proves FMT-11 for a body that the fetcher cut.
func TestTruncated(t *testing.T) {
	for _, test := range []struct {
		name, body string
		truncated  bool
		want       string // the result of Check for /private
	}{
		{"whole", "User-agent: *\nDisallow: /p", false, disallowed},
		{"cut within a line", "User-agent: *\nDisallow: /p", true, pageCleared},
		{"cut after a line", "User-agent: *\nDisallow: /p\n", true, disallowed},
		{"cut within the first line", "User-agent: *", true, pageCleared},
	} {
		t.Run("FMT-11/"+test.name, func(t *testing.T) {
			s := newGateTest(t, Config{})
			page := robotstest.URL(t, "https://example.com/private")
			s.fetchRobots(page, func(u decorum.URL) *decorum.Response {
				res := respondWith(200, test.body)(u)
				res.BodyLimitExceeded = test.truncated
				return res
			})
			s.wantCheck(page, test.want)
		})
	}
}

// TestNotesFail proves that a page is not allowed if the notes cannot be read, and that an answer has
// no effect if it cannot be stored.
func TestNotesFail(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	s := newGateTest(t, Config{})
	s.notes.failing = true
	if c, err := s.check(page); !errors.Is(err, errNotesFailed) || c.WasIssued() {
		t.Errorf("Check = %v, %v", c, err)
	}
	s.notes.failing = false
	c := s.wantRobotsFetch(page)
	s.notes.failing = true
	if _, err := s.gate.RecordFetch(t.Context(), s.now, c, respondWith(200)(page),
		nil); !errors.Is(err, errNotesFailed) {
		t.Errorf("RecordFetch: %v", err)
	}
	if _, err := s.gate.CheckRobotsRedirect(t.Context(), s.now, page,
		robotstest.URL(t, "http://a.test/").Origin()); !errors.Is(err, errNotesFailed) {
		t.Errorf("CheckRobotsRedirect: %v", err)
	}
	s.wantCheck(page, pending)
	s.notes.failing = false
	s.now = s.now.Add(2 * time.Minute)
	s.wantCheck(page, robotsFirst)
}

// TestDamagedNote proves that a damaged note permits nothing.
func TestDamagedNote(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	s := newGateTest(t, Config{})
	s.fetchRobots(page, respondWith(200, someRules))
	good := s.notes.notes[noteID{page.Origin(), "robots"}]
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x10
		s.notes.notes[noteID{page.Origin(), "robots"}] = bad
		s.restart()
		s.wantCheck(page, robotsFirst)
	}
	for n := range good {
		s.notes.notes[noteID{page.Origin(), "robots"}] = good[:n]
		s.restart()
		s.wantCheck(page, robotsFirst)
	}
}

func TestGateCheckAllocatesNothing(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	s.fetchRobots(page, respondWith(200, someRules))
	if n := testing.AllocsPerRun(100, func() { s.check(page) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestGateConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"negative TTL":        {MinTTL: -1},
		"least above most":    {MinTTL: 48 * time.Hour},
		"fewer than 5 hops":   {MaxRedirects: 4},
		"negative hops":       {MaxRedirects: -1},
		"negative outage":     {MinOutageForCachedRules: -1},
		"negative patience":   {SuspendAfterFailures: -1},
		"negative origins":    {MaxCachedOrigins: -1},
		"negative retry":      {Backoff: Backoff{First: -1}},
		"negative retry max":  {Backoff503: Backoff{Max: -1}},
		"retry above its max": {Backoff: Backoff{First: 2, Max: 1}},
	} {
		if cfg.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, cfg := range map[string]Config{
		"zero":              {},
		"long first retry":  {Backoff: Backoff{First: 3 * time.Hour}},
		"short last retry":  {Backoff503: Backoff{Max: 2 * time.Minute}},
		"more hops, longer": {MaxRedirects: 8, MaxTTL: 7 * day},
	} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOutcomeNames(t *testing.T) {
	for want, o := range map[string]Outcome{"unknown": OutcomeUnknown, "rules": OutcomeRules,
		"allow_all":    OutcomeAllowAll,
		"disallow_all": OutcomeDisallowAll, "cached_rules": OutcomeCachedRules,
		"following": OutcomeRedirected, "Outcome(9)": 9} {
		if got := fmt.Sprint(o); got != want {
			t.Errorf("Outcome(%d) = %q, want %q", uint8(o), got, want)
		}
	}
}
