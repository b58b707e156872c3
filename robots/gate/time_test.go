package gate

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestFreshness proves how long an answer is valid.
func TestFreshness(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	for _, test := range []struct {
		name   string
		cfg    Config
		status int
		header string   // Cache-Control
		others []string // names and values of other headers
		holds  time.Duration
	}{
		{"CACHE-01", Config{}, 200, "", nil, day},
		{"CACHE-01/not longer for a higher bound", Config{MaxTTL: 7 * day}, 200, "", nil, day},
		{"CACHE-01/invalid", Config{}, 200, "max-age=1d", nil, day},
		{"CACHE-01/not by a heuristic", Config{MaxTTL: 7 * day}, 200,
			"", []string{"Last-Modified", "Sun, 01 Mar 2020 12:00:00 GMT"}, day},
		{"CACHE-01/s-maxage is for others", Config{}, 200, "s-maxage=60", nil, day},
		{"CACHE-04", Config{}, 200, "max-age=3600", nil, time.Hour},
		{"CACHE-04/404", Config{}, 404, "max-age=3600", nil, time.Hour},
		{"CACHE-04/the smallest", Config{}, 200, "max-age=7200, max-age=3600", nil, time.Hour},
		{"CACHE-05", Config{MaxTTL: 48 * time.Hour}, 200, "max-age=172800", nil, 48 * time.Hour},
		{"CACHE-06", Config{}, 200, "", []string{"Expires", "Sun, 01 Mar 2026 13:00:00 GMT"}, time.Hour},
		{"CACHE-06/longer", Config{MaxTTL: 7 * day}, 200,
			"public", []string{"Expires", "Tue, 03 Mar 2026 12:00:00 GMT"}, 2 * day},
		{"CACHE-06/past", Config{}, 200, "", []string{"Expires", "Sun, 01 Mar 2026 11:00:00 GMT"}, time.Minute},
		{"CACHE-06/invalid", Config{}, 200, "", []string{"Expires", "0"}, day},
		{"CACHE-06/max-age goes first", Config{}, 200,
			"max-age=3600", []string{"Expires", "Sun, 01 Mar 2026 14:00:00 GMT"}, time.Hour},
		{"CACHE-06/Age counts beyond a day", Config{MaxTTL: 7 * day}, 200, "max-age=172800", []string{"Age", "3600"},
			47 * time.Hour},
		{"CACHE-06/Age counts not within a day", Config{MaxTTL: 7 * day}, 200,
			"max-age=172800", []string{"Age", "172000"}, day},
		{"CACHE-07/ceiling", Config{}, 200, "max-age=172800", nil, day},
		{"CACHE-07/low ceiling", Config{MaxTTL: time.Hour}, 200, "", nil, time.Hour},
		{"CACHE-07/max-age=0", Config{}, 200, "max-age=0", nil, time.Minute},
		{"CACHE-07/no-cache", Config{}, 200, "no-cache", nil, time.Minute},
		{"CACHE-07/no-store", Config{MinTTL: time.Hour}, 200, "no-store, max-age=86400", nil, time.Hour},
		{"CACHE-10", Config{}, 404, "", nil, day},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newGateTest(t, test.cfg)
			s.fetchRobots(page, respondWith(test.status,
				append(test.others, "Cache-Control", test.header)...))
			start := s.now
			for _, when := range []string{"running", "restarted"} { // CACHE-09
				t.Log(when)
				s.now = start.Add(test.holds - time.Nanosecond)
				s.wantCheck(page, pageCleared)
				s.restart()
			}
			s.now = start.Add(test.holds)
			s.wantCheck(page, robotsFirst)
		})
	}
}

// TestGraceOfNewRules proves that rules that are valid for a minute still clear a page later, if the
// host rests for longer or no worker is free: one page, within a day, and only in the Gate that has
// received the rules.
func TestGraceOfNewRules(t *testing.T) {
	a, b := robotstest.URL(t, "https://example.com/a"), robotstest.URL(t, "https://example.com/b")
	brief := respondWith(200, "Cache-Control", "no-cache", "User-agent: *\nDisallow: /a\n")
	for _, test := range []struct {
		name  string
		wait  time.Duration
		setUp func(*gateTest)
		want  string
	}{
		{"held up", 23 * time.Hour, func(*gateTest) {}, pageCleared},
		{"for too long", day, func(*gateTest) {}, robotsFirst},
		{"a page before", time.Hour, func(s *gateTest) { s.wantCheck(b, pageCleared) }, robotsFirst},
		{"what is disallowed is no page", time.Hour, func(s *gateTest) { s.wantCheck(a, disallowed) }, pageCleared},
		{"by another gate", time.Hour, (*gateTest).restart, robotsFirst},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newGateTest(t, Config{})
			s.fetchRobots(b, brief)
			test.setUp(s)
			s.now = s.now.Add(test.wait)
			s.wantCheck(b, test.want)
			if test.want == pageCleared {
				s.wantCheck(b, robotsFirst)
			}
		})
	}
}

// TestRetries proves when a failed fetch is repeated.
func TestRetries(t *testing.T) {
	minutes := func(ns ...int) (ds []time.Duration) {
		for _, n := range ns {
			ds = append(ds, time.Duration(n)*time.Minute)
		}
		return ds
	}
	for _, test := range []struct {
		name   string
		cfg    Config
		answer func(decorum.URL) *decorum.Response
		waits  []time.Duration
	}{
		{"FETCH-12", Config{}, respondWith(503), minutes(1, 2, 4, 5, 5)},
		{"FETCH-11/500", Config{}, respondWith(500), minutes(5, 10, 20, 40, 60, 60)},
		{"FETCH-11/429", Config{}, respondWith(429), minutes(5, 10)},
		{"FETCH-11/no response", Config{}, failDownload, minutes(5, 10)},
		{"Q-21/settings", Config{Backoff: Backoff{time.Minute, 3 * time.Minute}}, failDownload, minutes(1, 2, 3)},
		{"Q-21/first longer than the default bound", Config{Backoff503: Backoff{First: time.Hour}},
			respondWith(503), minutes(60, 60)},
		{"Q-21/Retry-After", Config{}, respondWith(503, "Retry-After", "1800"), minutes(30, 30)},
		{"Q-21/Retry-After of 429", Config{}, respondWith(429, "Retry-After", "5400"), minutes(90, 90)},
		{"Q-21/shorter Retry-After", Config{}, respondWith(500, "Retry-After", "420"), minutes(7, 10, 20)},
		{"Q-21/date", Config{}, respondWith(500, "Retry-After", "Sun, 01 Mar 2026 12:30:00 GMT"), minutes(30, 10)},
		{"Q-21/endless", Config{}, respondWith(500, "Retry-After", "99999999999999999999"), minutes(24*60, 24*60)},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newGateTest(t, test.cfg)
			page := robotstest.URL(t, "https://example.com/b")
			for i, wait := range test.waits {
				result := s.fetchRobots(page, test.answer)
				want := OriginPostponedError{Until: s.now.Add(wait), Suspended: i >= 2, ConsecutiveFailures: i + 1}
				if got := result.PostponedErr; !got.Until.Equal(want.Until) || got.Suspended != want.Suspended ||
					got.ConsecutiveFailures != want.ConsecutiveFailures {
					t.Errorf("after failure %d: %+v, want %+v", i+1, got, want)
				}
				s.now = s.now.Add(wait - time.Nanosecond)
				_, err := s.wantCheck(page, unreachable)
				var closed *OriginPostponedError
				if !errors.As(err, &closed) || *closed != *result.PostponedErr {
					t.Errorf("Check says %+v, RecordFetch said %+v", closed, result.PostponedErr)
				}
				s.now = s.now.Add(time.Nanosecond)
				if i%2 == 1 {
					s.restart()
				}
			}
		})
	}
}

// TestSuccessEndsBackoff proves that a success resets the count of consecutive failures.
func TestSuccessEndsBackoff(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	for _, status := range []int{500, 500, 500, 404} {
		s.fetchRobots(page, respondWith(status))
		s.now = s.now.Add(day)
	}
	result := s.fetchRobots(page, respondWith(500))
	if c := result.PostponedErr; c.ConsecutiveFailures != 1 || c.Suspended || !c.Until.Equal(s.now.Add(5*time.Minute)) {
		t.Errorf("postponed %+v, want a first failure", c)
	}
}

// An outagePhase is a number of days on which a server gives the same answer.
type outagePhase struct {
	days   int
	answer func(decorum.URL) *decorum.Response
}

// TestOutage proves the outcome for an origin whose robots.txt fails for a long time. It fetches once a
// day at noon, and not at all in phases with a nil answer.
func TestOutage(t *testing.T) {
	good := respondWith(200, someRules)
	for _, test := range []struct {
		name   string
		cfg    Config
		phases []outagePhase
		want   Outcome // after the last answer
	}{
		{"FETCH-13", Config{}, []outagePhase{{1, good}, {32, respondWith(500)}}, OutcomeCachedRules},
		{"FETCH-13/no response", Config{}, []outagePhase{{1, good}, {32, failDownload}}, OutcomeCachedRules},
		{"FETCH-13/all kinds of errors", Config{}, []outagePhase{{1, good}, {10, respondWith(503)}, {10, failDownload},
			{12, respondWith(429)}}, OutcomeCachedRules},
		{"FETCH-13/the last copy was none", Config{},
			[]outagePhase{{1, good}, {1, respondWith(404)}, {32, failDownload}}, OutcomeAllowAll},
		{"FETCH-14", Config{}, []outagePhase{{32, respondWith(500)}}, OutcomeAllowAll},
		{"FETCH-15/a 404 between", Config{},
			[]outagePhase{{20, respondWith(500)}, {1, respondWith(404)}, {20, respondWith(500)}}, OutcomeDisallowAll},
		{"FETCH-15/a file between", Config{}, []outagePhase{{31, failDownload}, {1, good}, {31, failDownload}},
			OutcomeDisallowAll},
		{"FETCH-15/a week unseen", Config{}, []outagePhase{{20, failDownload}, {6, nil}, {6, failDownload}},
			OutcomeAllowAll},
		{"FETCH-15/longer unseen", Config{}, []outagePhase{{20, failDownload}, {7, nil}, {20, failDownload}},
			OutcomeDisallowAll},
		{"FETCH-16/day 30", Config{}, []outagePhase{{1, good}, {31, respondWith(500)}}, OutcomeDisallowAll},
		{"FETCH-16/setting", Config{MinOutageForCachedRules: 2 * day},
			[]outagePhase{{3, failDownload}}, OutcomeDisallowAll},
		{"FETCH-13/setting", Config{MinOutageForCachedRules: 2 * day},
			[]outagePhase{{4, failDownload}}, OutcomeAllowAll},
		{"FETCH-11", Config{}, []outagePhase{{40, failDownload}, {1, good}}, OutcomeRules},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newGateTest(t, test.cfg)
			page := robotstest.URL(t, "https://example.com/b")
			var result RecordFetchResult
			for _, phase := range test.phases {
				for range phase.days {
					if phase.answer != nil {
						result = s.fetchRobots(page, phase.answer)
					}
					s.now = s.now.Add(day)
					s.restart() // CACHE-09: the outage is counted through restarts
				}
			}
			if result.Outcome != test.want || result.HasRulesInForce != (test.want != OutcomeDisallowAll) {
				t.Errorf("the last result is %+v, want %v", result, test.want)
			}
		})
	}
}

// TestLastGoodCopy proves FETCH-13 and CACHE-02 in detail: the copy is kept while the origin is
// postponed, decides once the outage has lasted for more than 30 days, and the Gate continues to try
// the server.
func TestLastGoodCopy(t *testing.T) {
	s := newGateTest(t, Config{})
	a, b := robotstest.URL(t, "https://example.com/a"), robotstest.URL(t, "https://example.com/b")
	s.fetchRobots(b, respondWith(200, someRules))
	fetched := s.now
	for s.now = s.now.Add(day); s.now.Sub(fetched) < 32*day; s.now = s.now.Add(day) {
		s.fetchRobots(b, failDownload)
		s.wantCheck(b, unreachable)
		s.wantDelay(b.Origin(), 7*time.Second)
	}
	result := s.fetchRobots(b, failDownload)
	if !result.HasRulesInForce || result.Outcome != OutcomeCachedRules {
		t.Errorf("result = %+v", result)
	}
	for _, when := range []string{"running", "restarted"} {
		t.Log(when)
		c, _ := s.wantCheck(b, pageCleared)
		if f := c.FetchSummary(); f.Outcome != OutcomeCachedRules || !f.FetchedAt.Equal(fetched) || f.SHA256 == "" {
			t.Errorf("the verdict is based on %+v", f)
		}
		s.wantCheck(a, disallowed)
		s.restart()
	}
	s.now = s.now.Add(time.Hour)
	s.wantCheck(b, robotsFirst)
}

// TestOutageOpens proves that an outage that is past its limit no longer postpones the origin, until
// another outage begins.
func TestOutageOpens(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	for i := range 50 {
		d := 1
		if i == 40 {
			d = 8 // after so many days without a request, another outage begins
		}
		result := s.fetchRobots(page, failDownload)
		if result.HasRulesInForce != (i > 30 && i <= 40) {
			t.Errorf("failure %d: result %+v", i, result)
		}
		s.now = s.now.Add(time.Duration(d) * day)
	}
}

// TestNoteHoldsOneBody proves that an outage does not make the note grow.
func TestNoteHoldsOneBody(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	body := "User-agent: *\n" + string(make([]byte, 600<<10))
	s.fetchRobots(page, respondWith(200, body))
	for range 3 {
		s.now = s.now.Add(day)
		s.fetchRobots(page, failDownload)
		if n := len(s.notes.notes[noteID{page.Origin(), "robots"}]); n < robots.MaxFileBytes ||
			n > robots.MaxFileBytes+2000 {
			t.Errorf("note of %d bytes, want one body of at most 500 KiB", n)
		}
	}
}

// TestValidatorsAreKept proves LOC-13 for the Gate: it stores ETag and Last-Modified, up to a length.
func TestValidatorsAreKept(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	s.fetchRobots(page, func(u decorum.URL) *decorum.Response {
		return &decorum.Response{URL: u, Status: 200, Header: http.Header{
			"Etag": {`"x"`}, "Last-Modified": {"Sun, 01 Mar 2026 12:00:00 GMT" + string(make([]byte, 5000))}}}
	})
	r, err := decodeOriginRecord(s.notes.notes[noteID{page.Origin(), "robots"}])
	if err != nil || r.LastResponse.ETag != `"x"` || len(r.LastResponse.LastModified) != 512 ||
		r.LastResponse.Status != 200 {
		t.Errorf("record = %+v, %v", r.LastResponse, err)
	}
}

// TestClockSetBack proves that a record from the future is not valid for years.
func TestClockSetBack(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	for name, answer := range map[string]func(decorum.URL) *decorum.Response{
		"rules": respondWith(200), "closed": failDownload} {
		s := newGateTest(t, Config{})
		s.fetchRobots(page, answer)
		s.restart()
		s.now = s.now.Add(-365 * day)
		t.Log(name)
		s.wantCheck(page, robotsFirst)
	}
}

// TestRecheck proves that the result of a repeated fetch says how the answer compares with the last one.
func TestRecheck(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	s := newGateTest(t, Config{})
	for i, step := range []struct {
		status int
		body   string
		want   FileRecheckResult
	}{
		{503, "", NoRecheck}, // the first fetch
		{200, "User-agent: *\nDisallow: /a\n", NoRecheck},
		{200, "User-agent: *\nDisallow: /a\n", SameFile},
		{200, "User-agent: *\nDisallow: /c\n", ChangedFile},
		{503, "", FailedRecheck},
		{200, "User-agent: *\nDisallow: /c\n", SameFile}, // as before the outage
		{404, "", ChangedFile},
		{410, "", SameFile},
		{200, "", ChangedFile}, // an empty file is a file
	} {
		s.now = s.now.Add(2 * day)
		res := respondWith(step.status, "")
		if step.status == 200 {
			res = respondWith(200, step.body)
		}
		if got := s.fetchRobots(page, res).RecheckResult; got != step.want {
			t.Errorf("step %d, status %d: %q, want %q", i, step.status, got, step.want)
		}
		s.restart()
	}
}
