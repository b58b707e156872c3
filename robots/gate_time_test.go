package robots

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

// TestFreshness: how long an answer holds.
func TestFreshness(t *testing.T) {
	page := mustURL(t, "https://example.com/b")
	for _, test := range []struct {
		name   string
		cfg    GateConfig
		status int
		header string // Cache-Control
		holds  time.Duration
	}{
		{"CACHE-01", GateConfig{}, 200, "", day},
		{"CACHE-01/not longer for a higher bound", GateConfig{MaxTTL: 7 * day}, 200, "", day},
		{"CACHE-04", GateConfig{}, 200, "max-age=3600", time.Hour},
		{"CACHE-04/404", GateConfig{}, 404, "max-age=3600", time.Hour},
		{"CACHE-05", GateConfig{MaxTTL: 48 * time.Hour}, 200, "max-age=172800", 48 * time.Hour},
		{"CACHE-07/ceiling", GateConfig{}, 200, "max-age=172800", day},
		{"CACHE-07/low ceiling", GateConfig{MaxTTL: time.Hour}, 200, "", time.Hour},
		{"CACHE-07/max-age=0", GateConfig{}, 200, "max-age=0", time.Minute},
		{"CACHE-07/no-cache", GateConfig{}, 200, "no-cache", time.Minute},
		{"CACHE-07/no-store", GateConfig{MinTTL: time.Hour}, 200, "no-store, max-age=86400", time.Hour},
		{"CACHE-10", GateConfig{}, 404, "", day},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, test.cfg)
			s.lookup(page, answers(test.status, "Cache-Control", test.header))
			start := s.now
			for _, when := range []string{"running", "restarted"} { // CACHE-09
				t.Log(when)
				s.now = start.Add(test.holds - time.Nanosecond)
				s.want(page, open)
				s.restart()
			}
			s.now = start.Add(test.holds)
			s.want(page, asks)
		})
	}
}

// TestRulesServe: rules that hold for a minute clear a page all the same when a
// host rests for longer than that, or nobody has time for it; one page, within
// a day, and only for the Gate that has just learnt them.
func TestRulesServe(t *testing.T) {
	a, b := mustURL(t, "https://example.com/a"), mustURL(t, "https://example.com/b")
	brief := answers(200, "Cache-Control", "no-cache", "User-agent: *\nDisallow: /a\n")
	for _, test := range []struct {
		name  string
		wait  time.Duration
		story func(*scene)
		want  string
	}{
		{"held up", 23 * time.Hour, func(*scene) {}, open},
		{"for too long", day, func(*scene) {}, asks},
		{"a page before", time.Hour, func(s *scene) { s.want(b, open) }, asks},
		{"what is disallowed is no page", time.Hour, func(s *scene) { s.want(a, disallowed) }, open},
		{"by another gate", time.Hour, (*scene).restart, asks},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, GateConfig{})
			s.lookup(b, brief)
			test.story(s)
			s.now = s.now.Add(test.wait)
			s.want(b, test.want)
			if test.want == open {
				s.want(b, asks)
			}
		})
	}
}

// TestRetries: when a failed lookup is made again.
func TestRetries(t *testing.T) {
	minutes := func(ns ...int) (ds []time.Duration) {
		for _, n := range ns {
			ds = append(ds, time.Duration(n)*time.Minute)
		}
		return ds
	}
	for _, test := range []struct {
		name   string
		cfg    GateConfig
		answer func(decorum.URL) *decorum.Response
		waits  []time.Duration
	}{
		{"FETCH-12", GateConfig{}, answers(503), minutes(1, 2, 4, 5, 5)},
		{"FETCH-11/500", GateConfig{}, answers(500), minutes(5, 10, 20, 40, 60, 60)},
		{"FETCH-11/429", GateConfig{}, answers(429), minutes(5, 10)},
		{"FETCH-11/no response", GateConfig{}, fails, minutes(5, 10)},
		{"Q-21/settings", GateConfig{Retry: Backoff{time.Minute, 3 * time.Minute}}, fails, minutes(1, 2, 3)},
		{"Q-21/first longer than the default bound", GateConfig{Retry503: Backoff{First: time.Hour}}, answers(503), minutes(60, 60)},
		{"Q-21/Retry-After", GateConfig{}, answers(503, "Retry-After", "1800"), minutes(30, 30)},
		{"Q-21/Retry-After of 429", GateConfig{}, answers(429, "Retry-After", "5400"), minutes(90, 90)},
		{"Q-21/shorter Retry-After", GateConfig{}, answers(500, "Retry-After", "420"), minutes(7, 10, 20)},
		{"Q-21/date", GateConfig{}, answers(500, "Retry-After", "Sun, 01 Mar 2026 12:30:00 GMT"), minutes(30, 10)},
		{"Q-21/endless", GateConfig{}, answers(500, "Retry-After", "99999999999999999999"), minutes(24*60, 24*60)},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, test.cfg)
			page := mustURL(t, "https://example.com/b")
			for i, wait := range test.waits {
				lesson := s.lookup(page, test.answer)
				want := PostponedError{Until: s.now.Add(wait), Dormant: i >= 2, Attempts: i + 1}
				if got := lesson.Postponed; !got.Until.Equal(want.Until) || got.Dormant != want.Dormant || got.Attempts != want.Attempts {
					t.Errorf("after failure %d: %+v, want %+v", i+1, got, want)
				}
				s.now = s.now.Add(wait - time.Nanosecond)
				_, err := s.want(page, unreachable)
				var closed *PostponedError
				if !errors.As(err, &closed) || *closed != *lesson.Postponed {
					t.Errorf("Check says %+v, Learn said %+v", closed, lesson.Postponed)
				}
				s.now = s.now.Add(time.Nanosecond)
				if i%2 == 1 {
					s.restart()
				}
			}
		})
	}
}

// TestSuccessEndsBackoff: failures count in a row.
func TestSuccessEndsBackoff(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	for _, status := range []int{500, 500, 500, 404} {
		s.lookup(page, answers(status))
		s.now = s.now.Add(day)
	}
	lesson := s.lookup(page, answers(500))
	if c := lesson.Postponed; c.Attempts != 1 || c.Dormant || !c.Until.Equal(s.now.Add(5*time.Minute)) {
		t.Errorf("closed %+v, want a first failure", c)
	}
}

// A stretch is days in which a server gives the same answer.
type stretch struct {
	days   int
	answer func(decorum.URL) *decorum.Response
}

// TestOutage: what becomes of an origin whose robots.txt fails for long. Each
// stretch is asked once a day at noon; a nil answer is not asked at all.
func TestOutage(t *testing.T) {
	good := answers(200, someRules)
	for _, test := range []struct {
		name  string
		cfg   GateConfig
		story []stretch
		want  Outcome // of the last answer
	}{
		{"FETCH-13", GateConfig{}, []stretch{{1, good}, {32, answers(500)}}, CachedRules},
		{"FETCH-13/no response", GateConfig{}, []stretch{{1, good}, {32, fails}}, CachedRules},
		{"FETCH-13/all kinds of errors", GateConfig{}, []stretch{{1, good}, {10, answers(503)}, {10, fails}, {12, answers(429)}}, CachedRules},
		{"FETCH-13/the last copy was none", GateConfig{}, []stretch{{1, good}, {1, answers(404)}, {32, fails}}, AllowedAll},
		{"FETCH-14", GateConfig{}, []stretch{{32, answers(500)}}, AllowedAll},
		{"FETCH-15/a 404 between", GateConfig{}, []stretch{{20, answers(500)}, {1, answers(404)}, {20, answers(500)}}, DisallowedAll},
		{"FETCH-15/a file between", GateConfig{}, []stretch{{31, fails}, {1, good}, {31, fails}}, DisallowedAll},
		{"FETCH-15/a week unseen", GateConfig{}, []stretch{{20, fails}, {6, nil}, {6, fails}}, AllowedAll},
		{"FETCH-15/longer unseen", GateConfig{}, []stretch{{20, fails}, {7, nil}, {20, fails}}, DisallowedAll},
		{"FETCH-16/day 30", GateConfig{}, []stretch{{1, good}, {31, answers(500)}}, DisallowedAll},
		{"FETCH-16/setting", GateConfig{Outage: 2 * day}, []stretch{{3, fails}}, DisallowedAll},
		{"FETCH-13/setting", GateConfig{Outage: 2 * day}, []stretch{{4, fails}}, AllowedAll},
		{"FETCH-11", GateConfig{}, []stretch{{40, fails}, {1, good}}, RulesKnown},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, test.cfg)
			page := mustURL(t, "https://example.com/b")
			var lesson Lesson
			for _, part := range test.story {
				for range part.days {
					if part.answer != nil {
						lesson = s.lookup(page, part.answer)
					}
					s.now = s.now.Add(day)
					s.restart() // CACHE-09: the outage is counted through restarts
				}
			}
			if lesson.Outcome != test.want || lesson.Open != (test.want != DisallowedAll) {
				t.Errorf("the last lesson is %+v, want %v", lesson, test.want)
			}
		})
	}
}

// TestLastGoodCopy pins FETCH-13 and CACHE-02 closely: the copy is kept while
// the origin is closed, decides when the outage is over 30 days old, and the
// server is asked again all the same.
func TestLastGoodCopy(t *testing.T) {
	s := newScene(t, GateConfig{})
	a, b := mustURL(t, "https://example.com/a"), mustURL(t, "https://example.com/b")
	s.lookup(b, answers(200, someRules))
	fetched := s.now
	for s.now = s.now.Add(day); s.now.Sub(fetched) < 32*day; s.now = s.now.Add(day) {
		s.lookup(b, fails)
		s.want(b, unreachable)
		s.wantPause(b.Origin(), 7*time.Second)
	}
	lesson := s.lookup(b, fails)
	if !lesson.Open || lesson.Outcome != CachedRules {
		t.Errorf("lesson = %+v", lesson)
	}
	for _, when := range []string{"running", "restarted"} {
		t.Log(when)
		c, _ := s.want(b, open)
		if f := c.File(); f.Outcome != CachedRules || !f.Fetched.Equal(fetched) || f.SHA256 == "" {
			t.Errorf("the verdict rests on %+v", f)
		}
		s.want(a, disallowed)
		s.restart()
	}
	s.now = s.now.Add(time.Hour)
	s.want(b, asks)
}

// TestOutageOpens: an origin that is closed by an outage is open again when the
// outage ends by its length, and stays so until it begins anew.
func TestOutageOpens(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	for i := range 50 {
		d := 1
		if i == 40 {
			d = 8 // unseen for so long, it begins anew
		}
		lesson := s.lookup(page, fails)
		if lesson.Open != (i > 30 && i <= 40) {
			t.Errorf("failure %d: lesson %+v", i, lesson)
		}
		s.now = s.now.Add(time.Duration(d) * day)
	}
}

// TestNoteHoldsOneBody: an outage does not make the note grow.
func TestNoteHoldsOneBody(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	body := "User-agent: *\n" + string(make([]byte, 600<<10))
	s.lookup(page, answers(200, body))
	for range 3 {
		s.now = s.now.Add(day)
		s.lookup(page, fails)
		if n := len(s.notes.notes[noteAt{page.Origin(), "robots"}]); n < Limit || n > Limit+2000 {
			t.Errorf("note of %d bytes, want one body of at most 500 KiB", n)
		}
	}
}

// TestValidatorsAreKept pins LOC-13 from the Gate's side: they are known, and
// bounded.
func TestValidatorsAreKept(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	s.lookup(page, func(u decorum.URL) *decorum.Response {
		return &decorum.Response{URL: u, Status: 200, Header: http.Header{
			"Etag": {`"x"`}, "Last-Modified": {"Sun, 01 Mar 2026 12:00:00 GMT" + string(make([]byte, 5000))}}}
	})
	r, err := decodeOriginRecord(s.notes.notes[noteAt{page.Origin(), "robots"}])
	if err != nil || r.Last.ETag != `"x"` || len(r.Last.LastModified) != 512 || r.Last.Status != 200 {
		t.Errorf("record = %+v, %v", r.Last, err)
	}
}

// TestClockSetBack: a record out of the future does not hold for years.
func TestClockSetBack(t *testing.T) {
	page := mustURL(t, "https://example.com/b")
	for name, answer := range map[string]func(decorum.URL) *decorum.Response{"rules": answers(200), "closed": fails} {
		s := newScene(t, GateConfig{})
		s.lookup(page, answer)
		s.restart()
		s.now = s.now.Add(-365 * day)
		t.Log(name)
		s.want(page, asks)
	}
}

// TestRecheck: a lookup of what was known says how its answer compares.
func TestRecheck(t *testing.T) {
	page := mustURL(t, "https://example.com/b")
	s := newScene(t, GateConfig{})
	for i, step := range []struct {
		status int
		body   string
		want   Recheck
	}{
		{503, "", NoRecheck}, // nothing was known
		{200, "User-agent: *\nDisallow: /a\n", NoRecheck},
		{200, "User-agent: *\nDisallow: /a\n", SameFile},
		{200, "User-agent: *\nDisallow: /c\n", ChangedFile},
		{503, "", FailedRecheck},
		{200, "User-agent: *\nDisallow: /c\n", SameFile}, // as before the outage
		{404, "", ChangedFile},
		{410, "", SameFile},
		{200, "", ChangedFile}, // an empty file is one
	} {
		s.now = s.now.Add(2 * day)
		res := answers(step.status, "")
		if step.status == 200 {
			res = answers(200, step.body)
		}
		if got := s.lookup(page, res).Recheck; got != step.want {
			t.Errorf("step %d, status %d: %q, want %q", i, step.status, got, step.want)
		}
		s.restart()
	}
}
